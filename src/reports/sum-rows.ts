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

/** An interaction counts under each of these. */
export const dimensions = (row: string) => `
  cross join lateral (values ('all', '' collate "C"), ('item_type', ${row}.item_type), ('item', ${itemOf(row)}),
    ('platform', ${orHyphen(`${row}.platform`)}), ('country', ${orHyphen(`${row}.country`)}),
    ('recommendation', ${row}.recommendation_id::text)) as d(dimension, value)`;

/** Figures of codes and transactions; each has a column for each window. */
export const creditedFigures = ['codes', 'transactions', 'by_offer', 'revenue', 'savings'] as const;
export const columnOf = (figure: (typeof creditedFigures)[number], window: Window) => `${figure}_${window}`;
export const creditColumns = creditedFigures.flatMap((figure) =>
  windowNames.map((window) => columnOf(figure, window)),
);

/** A student who was there so many days before, or more, is new to every range that can be asked for. */
export const gapDaysEnd = limits.reportDaysMax;
