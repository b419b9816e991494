import { limits } from '../limits.ts';
import type { AskedPage } from '../postgres/newest-first.ts';
import type { Pool } from '../postgres/pool.ts';
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
import { type InteractionAnswer, interactionAnswer } from './answer.ts';
import { listInteractions } from './look-for-interactions.ts';

const filters = {
  student_id: uuid(),
  user_id: text({ codePointsMax: limits.interactionUserCodePointsMax }),
  item_id: uuid(),
  recommendation_id: uuid(),
  interaction_type: interaction.interaction_type,
  item_type: oneOf(Object.keys(itemTypes) as ItemType[]),
  source: oneOf(['SERVICE']),
};

const paging = {
  from: dateTime({ description: 'only those received at this time or later' }),
  to: dateTime({ description: 'only those received before this time' }),
  cursor: uuid({ description: 'the `next_cursor` of the previous page' }),
  limit: integer({
    minimum: 1,
    maximum: limits.interactionsPerPageMax,
    description: `interactions per page, default ${limits.interactionsPerPageDefault}`,
  }),
};

export const interactionFilters: Readonly<Record<string, Field>> = Object.fromEntries(
  Object.entries({ ...filters, ...paging }).map(([name, field]) => [name, optional(field)]),
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
  const asked = { from, to, cursor, limit } as AskedPage;
  const { rows, next } = await listInteractions(pool, organisationId, filter, asked);
  return { interactions: rows.map(interactionAnswer), next_cursor: next };
}
