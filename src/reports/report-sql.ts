import { limits } from '../limits.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { type Window, windowNames } from './definitions.ts';

/** Pieces of SQL that counting and reading have in common. */

/** Stands for the student of an interaction without one: a primary key has no nulls. */
export const nobody = firstUuid;

export const isUsable = (row: string) => `${row}.basis in ('recommendation', 'browsing')`;
export const dayOf = (time: string) => `(${time} at time zone 'UTC')::date`;

/** The value of a group: a null is written as a hyphen; every other text begins with an equals sign. */
export const orHyphen = (column: string) => `coalesce('=' || ${column}, '-')`;
export const itemOf = (row: string) => `${row}.item_type || ':' || ${row}.item_id`;

/**
 * An interaction counts under each of these. The list is constant, because PostgreSQL compiles the expressions of a lateral
 * `values` anew for every row. A cluster cannot pass on `case x when y`.
 */
export const dimensions = (row: string) => `
  cross join (values ('all'), ('item_type'), ('item'), ('platform'), ('country'), ('recommendation')) as k(dimension)
  cross join lateral (
    select k.dimension, case when k.dimension = 'all' then '' when k.dimension = 'item_type' then ${row}.item_type
      when k.dimension = 'item' then ${itemOf(row)} when k.dimension = 'platform' then ${orHyphen(`${row}.platform`)}
      when k.dimension = 'country' then ${orHyphen(`${row}.country`)} else ${row}.recommendation_id::text end collate "C" as value) as d`;
export const hasDimension = (row: string) =>
  `(k.dimension <> 'recommendation' or ${row}.recommendation_id is not null)`;

/** Figures of codes and transactions; each has a column for each window. */
export const creditedFigures = ['codes', 'transactions', 'by_offer', 'revenue', 'savings'] as const;
export const columnOf = (figure: (typeof creditedFigures)[number], window: Window) => `${figure}_${window}`;
export const creditColumns = creditedFigures.flatMap((figure) =>
  windowNames.map((window) => columnOf(figure, window)),
);

/** A student who was there so many days before, or more, is new to every range that can be asked for. */
export const gapDaysEnd = limits.reportDaysMax;
