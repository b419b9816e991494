import { limits } from '../limits.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { type Window, windowNames } from './definitions.ts';

/** Stands in for a missing student, because a primary key cannot contain nulls. */
export const nobody = firstUuid;

export const isUsable = (row: string) => `${row}.basis in ('recommendation', 'browsing')`;
export const dayOf = (time: string) => `(${time} at time zone 'UTC')::date`;

/** Null becomes a hyphen, and any other text is prefixed with an equals sign. */
export const orHyphen = (column: string) => `coalesce('=' || ${column}, '-')`;
export const itemOf = (row: string) => `${row}.item_type || ':' || ${row}.item_id`;

/**
 * The list is constant, because PostgreSQL recompiles the expressions of a lateral `values` for every row. `case x when
 * y` is avoided, because a cluster cannot forward it.
 */
export const dimensions = (row: string) => `
  cross join (values ('all'), ('item_type'), ('item'), ('platform'), ('country'), ('recommendation')) as k(dimension)
  cross join lateral (
    select k.dimension, case when k.dimension = 'all' then '' when k.dimension = 'item_type' then ${row}.item_type
      when k.dimension = 'item' then ${itemOf(row)} when k.dimension = 'platform' then ${orHyphen(`${row}.platform`)}
      when k.dimension = 'country' then ${orHyphen(`${row}.country`)} else ${row}.recommendation_id::text end collate "C" as value) as d`;
export const hasDimension = (row: string) =>
  `(k.dimension <> 'recommendation' or ${row}.recommendation_id is not null)`;

/** Each figure has one column per window. */
export const creditedFigures = ['codes', 'transactions', 'by_offer', 'revenue', 'savings'] as const;
export const columnOf = (figure: (typeof creditedFigures)[number], window: Window) => `${figure}_${window}`;
export const creditColumns = creditedFigures.flatMap((figure) =>
  windowNames.map((window) => columnOf(figure, window)),
);

/** The first gap in days that is too long to affect a result, because no report covers a longer range. */
export const gapDaysEnd = limits.reportDaysMax;
