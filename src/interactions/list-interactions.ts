import { type Detail, RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import {
  dateTime,
  type Field,
  integer,
  oneOf,
  optional,
  type Scalar,
  text,
  uuid,
} from '../registry/fields.ts';
import { type ItemType, interaction, itemTypes } from '../registry/interaction.ts';
import type { Instant } from '../registry/times.ts';
import { firstIdFrom } from '../registry/uuid-v7.ts';
import { type InteractionFilter, listInteractions } from '../store/interactions.ts';
import type { Pool } from '../store/pool.ts';
import { type InteractionAnswer, interactionAnswer } from './answer.ts';

/** Each of these has an index that leads to the few interactions of one person, item or recommendation. */
const narrow = {
  student_id: uuid(),
  user_id: text({ codePointsMax: limits.interactionUserCodePointsMax }),
  item_id: uuid(),
  recommendation_id: uuid(),
};

/** Each of these has an index of its own too, but one that two of them shared would have to be searched to its end. */
const broad = {
  interaction_type: interaction.interaction_type,
  item_type: oneOf(Object.keys(itemTypes) as ItemType[]),
  source: oneOf(['SERVICE']),
};

const paging = {
  from: dateTime({ description: 'received at this instant or later' }),
  to: dateTime({ description: 'received before this instant' }),
  cursor: uuid({ description: 'the `next_cursor` of the page before' }),
  limit: integer({
    minimum: 1,
    maximum: limits.interactionsPerPageMax,
    description: `how many a page, ${limits.interactionsPerPageDefault} unless said`,
  }),
};

export const interactionFilters: Readonly<Record<string, Field>> = Object.fromEntries(
  Object.entries({ ...narrow, ...broad, ...paging }).map(([name, field]) => [name, optional(field)]),
);

export interface InteractionPage {
  readonly interactions: readonly InteractionAnswer[];
  readonly next_cursor: string | null;
}

export async function listPage(
  pool: Pool,
  organisationId: string,
  query: Readonly<Record<string, Scalar>>,
): Promise<InteractionPage> {
  const { from, to, cursor, limit: asked, ...filter } = query;
  refuseTwoBroad(filter);
  const limit = asked === undefined ? limits.interactionsPerPageDefault : Number(asked);
  const ends = [to === undefined ? undefined : firstIdFrom(to as Instant), cursor as string | undefined];
  const found = await listInteractions(pool, organisationId, filter as InteractionFilter, {
    from: from === undefined ? undefined : firstIdFrom(from as Instant),
    before: ends.filter((end) => end !== undefined).sort()[0],
    limit: limit + 1, // One more than asked for tells whether there is a next page.
  });
  const page = found.slice(0, limit);
  return {
    interactions: page.map(interactionAnswer),
    next_cursor: found.length > limit ? (page.at(-1)?.interaction_id ?? null) : null,
  };
}

function refuseTwoBroad(filter: Readonly<Record<string, Scalar>>): void {
  const asked = Object.keys(filter);
  const broadAsked = asked.filter((name) => name in broad);
  if (broadAsked.length < 2 || asked.some((name) => name in narrow)) return;
  const message = `cannot be combined with ${broadAsked[0]} alone; add ${Object.keys(narrow).join(', ')}, or ask for one of them`;
  const details: Detail[] = broadAsked.slice(1).map((field) => ({ field, code: 'not_combinable', message }));
  throw new RequestError('invalid_request', { details });
}
