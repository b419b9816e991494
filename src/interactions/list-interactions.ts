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
import { interactionTable, type StoredInteraction } from '../store/interactions.ts';
import { type AskedPage, newestFirst } from '../store/newest-first.ts';
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
  const { from, to, cursor, limit = limits.interactionsPerPageDefault, ...filter } = query;
  refuseTwoBroad(filter);
  const asked = { from, to, cursor, limit } as AskedPage;
  const { rows, next } = await newestFirst<StoredInteraction>(
    pool,
    interactionTable,
    organisationId,
    filter,
    asked,
  );
  return { interactions: rows.map(interactionAnswer), next_cursor: next };
}

function refuseTwoBroad(filter: Readonly<Record<string, Scalar>>): void {
  const asked = Object.keys(filter);
  const broadAsked = asked.filter((name) => name in broad);
  if (broadAsked.length < 2 || asked.some((name) => name in narrow)) return;
  const message = `cannot be combined with ${broadAsked[0]} alone; add ${Object.keys(narrow).join(', ')}, or ask for one of them`;
  const details: Detail[] = broadAsked.slice(1).map((field) => ({ field, code: 'not_combinable', message }));
  throw new RequestError('invalid_request', { details });
}
