import { limits } from '../limits.ts';
import type { AskedPage } from '../postgres/keyset-page.ts';
import type { Pool } from '../postgres/pool.ts';
import { LineBuffer } from '../records/line-buffer.ts';
import { dateTime, type Field, oneOf, optional, perPage, type Scalar, uuid } from '../registry/fields.ts';
import { type ItemType, interaction, itemTypes } from '../registry/interaction.ts';
import { personId } from '../registry/personal.ts';
import type { Instant } from '../registry/times.ts';
import { type InteractionAnswer, interactionAnswer } from './answer.ts';
import { type InteractionFilter, listInteractions } from './interaction-search.ts';

const filters = {
  student_id: uuid(),
  user_id: personId({ codePointsMax: limits.interactionUserCodePointsMax }),
  item_id: uuid(),
  recommendation_id: uuid(),
  interaction_type: interaction.interaction_type,
  item_type: oneOf(Object.keys(itemTypes) as ItemType[]),
  source: oneOf(['SERVICE']),
};

const times = {
  event_from: dateTime({ description: 'only interactions that happened at this time or later' }),
  event_to: dateTime({ description: 'only interactions that happened before this time' }),
  from: dateTime({ description: 'only what was received at this time or later' }),
  to: dateTime({ description: 'only what was received before this time' }),
};

const paging = {
  cursor: uuid({
    description: 'the `next_cursor` of the previous page, or the id of the last interaction received',
  }),
  limit: perPage('interactions', limits.interactionsPerPageMax, limits.interactionsPerPageDefault),
};

export const interactionFilters: Readonly<Record<string, Field>> = Object.fromEntries(
  Object.entries({ ...filters, ...times, ...paging }).map(([name, field]) => [name, optional(field)]),
);

export interface InteractionPage {
  readonly interactions: readonly InteractionAnswer[];
  readonly next_cursor: string | null;
}

type Query = Readonly<Record<string, Scalar>>;

export async function listPage(pool: Pool, organisationId: string, query: Query): Promise<InteractionPage> {
  const { filter, asked } = readQuery(query);
  const { rows, next } = await listInteractions(pool, organisationId, filter, asked);
  return { interactions: rows.map(interactionAnswer), next_cursor: next };
}

/** One per line. Holds no connection between pages, however slowly the client reads. */
export async function* interactionLines(
  pool: Pool,
  organisationId: string,
  query: Query,
): AsyncGenerator<Buffer> {
  const { filter, asked } = readQuery({ ...query, limit: limits.interactionsPerPageMax });
  const lines = new LineBuffer();
  for (let cursor: string | null | undefined = asked.cursor; cursor !== null; ) {
    const { rows, next } = await listInteractions(pool, organisationId, filter, { ...asked, cursor });
    for (const row of rows) lines.add(JSON.stringify(interactionAnswer(row)));
    yield lines.take();
    cursor = next;
  }
}

function readQuery(query: Query): { readonly filter: InteractionFilter; readonly asked: AskedPage } {
  const {
    from,
    to,
    cursor,
    limit = limits.interactionsPerPageDefault,
    event_from,
    event_to,
    ...equal
  } = query;
  const [eventFrom, eventTo] = [event_from, event_to] as (Instant | undefined)[];
  return { filter: { equal, eventFrom, eventTo }, asked: { from, to, cursor, limit } as AskedPage };
}
