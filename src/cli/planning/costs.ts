import { readFileSync } from 'node:fs';
import { commandError } from '../arguments/help.ts';

/**
 * The cost of a unit of work. CPU costs are microseconds of CPU time (from `/proc`), not wall-clock time. The other
 * costs are bytes.
 */
export interface Cost {
  readonly service: number;
  readonly postgres: number;
  /** WAL bytes without full-page images, but including the numbering of changes. */
  readonly wal: number;
  /**
   * Bytes of change log rows. Each batch of records adds one row, and the interactions in a commit add one per
   * organisation.
   */
  readonly changes: number;
}

export type CostPart = keyof Cost;

/** The costs that `plan` uses. */
export interface Costs {
  /** The machine and the software versions, printed by `plan`. */
  readonly measuredOn: string;
  /**
   * The fixed costs. The service has a fixed cost per upload, and everything else has one per batch of up to 1,000
   * records.
   */
  readonly upload: Cost;
  /** The cost of a new transaction record with all 15 fields, in addition to the cost of its upload. */
  readonly record: Cost;
  /**
   * The cost of an interaction with all its fields, whose item and student are cached, at several rates per second and
   * process. Queued interactions share a commit, and interactions of one organisation also share a statement and a
   * change log row. Interactions therefore become cheaper at higher rates, and more so for `one` organisation than for
   * `many`.
   */
  readonly interactions: readonly InteractionCost[];
  /** The cost per interaction of building the indexes when its day is over. */
  readonly indexing: { readonly postgres: number; readonly wal: number };
  /** Bytes on disk. Receipts are counted per batch of records. */
  readonly stored: {
    readonly record: { readonly table: number; readonly key: number };
    readonly interaction: { readonly written: number; readonly indexes: number };
    readonly receipt: number;
  };
  /** A process's peak memory usage. */
  readonly processBytes: number;
  /** PostgreSQL's CPU use with a pooler, relative to its use without one. */
  readonly throughPooler: number;
  /** PostgreSQL's CPU use on Citus, relative to plain PostgreSQL. */
  readonly onCitus: {
    readonly record: number;
    readonly interaction: number;
    /** Applies if all interactions belong to one organisation. */
    readonly interactionOfOne: number;
  };
}

export interface InteractionCost {
  readonly perSecond: number;
  readonly one: Cost;
  readonly many: Cost;
}

/** Reads costs written by `npm run bench -- costs --save`, possibly edited by hand. */
export function readCosts(file: string, like: Costs): Costs {
  const fail = (problem: string) =>
    commandError(`--costs ${file}: ${problem}; npm run bench -- costs --save ${file} writes a complete file`);
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw fail(error instanceof SyntaxError ? 'it is not JSON' : `cannot be read (${codeOf(error)})`);
  }
  const problem = differenceIn('', given, like);
  if (problem !== undefined) throw fail(problem);
  const costs = given as Costs;
  const rates = costs.interactions.map(({ perSecond }) => perSecond);
  const at = rates.findIndex((rate, index) => index > 0 && rate <= (rates[index - 1] as number));
  if (at !== -1) throw fail(`interactions[${at}].perSecond must be above the previous one`);
  return costs;
}

/** Returns a message about the first field whose type differs from `like`, or undefined if all fields match. */
function differenceIn(path: string, given: unknown, like: unknown): string | undefined {
  const name = path === '' ? 'it' : path;
  if (typeof like === 'number')
    return Number.isFinite(given) && (given as number) > 0 ? undefined : `${name} must be a number above 0`;
  if (typeof like === 'string')
    return typeof given === 'string' && /^[^\p{Cc}]{1,200}$/u.test(given)
      ? undefined
      : `${name} must be a line of text, at most 200 characters`;
  if (Array.isArray(like)) {
    if (!Array.isArray(given) || given.length === 0) return `${name} must be a list with at least one entry`;
    return firstOf(given.map((item, at) => [`${path}[${at}]`, item, like[0]]));
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return `${name} must be an object`;
  const fields = like as Record<string, unknown>;
  const below = (field: string) => (path === '' ? field : `${path}.${field}`);
  const unknown = Object.keys(given).find((field) => !Object.hasOwn(fields, field));
  if (unknown !== undefined) return `${below(unknown)} is not a cost, so remove it`;
  const missing = Object.keys(fields).find((field) => !Object.hasOwn(given, field));
  if (missing !== undefined) return `${below(missing)} is missing`;
  return firstOf(
    Object.keys(fields).map((field) => [
      below(field),
      (given as Record<string, unknown>)[field],
      fields[field],
    ]),
  );
}

function firstOf(pairs: readonly (readonly [string, unknown, unknown])[]): string | undefined {
  for (const [path, given, like] of pairs) {
    const difference = differenceIn(path, given, like);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown error';
}
