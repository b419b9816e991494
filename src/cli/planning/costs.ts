import { readFileSync } from 'node:fs';
import { commandError } from '../arguments/help.ts';

/** What a unit of work costs. CPU is in microseconds of CPU time (`/proc`), not wall-clock time; the rest in bytes. */
export interface Cost {
  readonly service: number;
  readonly postgres: number;
  /** Write-ahead log without full-page images, with that of numbering the changes. */
  readonly wal: number;
  /** In the change log: a row for each batch of records, and for the interactions of an organisation in a commit. */
  readonly changes: number;
}

export type CostPart = keyof Cost;

/** The costs from which `plan` calculates. */
export interface Costs {
  /** The machine and the versions, as `plan` prints them. */
  readonly measuredOn: string;
  /** An upload by itself, for the service, and a batch of up to 1,000 records by itself, for everything else. */
  readonly upload: Cost;
  /** A new transaction with all its 15 fields, beside what its upload costs. */
  readonly record: Cost;
  /**
   * An interaction with all its fields, its item and student cached, by how many a second one process takes.
   * Interactions that wait together share a commit, and those of one organisation also a statement and a row of the
   * change log: so all become cheaper with the rate, and those of `one` organisation more than those of `many`.
   */
  readonly interactions: readonly InteractionCost[];
  /** For each interaction, what the indexes of its day take that are built when the day is over. */
  readonly indexing: { readonly postgres: number; readonly wal: number };
  /** Bytes on disk. A receipt is counted per batch. */
  readonly stored: {
    readonly record: { readonly table: number; readonly key: number };
    readonly interaction: { readonly written: number; readonly indexes: number };
    readonly receipt: number;
  };
  /** The memory of a process at its largest. */
  readonly processBytes: number;
  /** PostgreSQL's CPU relative to running without a pooler. */
  readonly throughPooler: number;
  /** PostgreSQL's CPU on Citus relative to plain PostgreSQL. */
  readonly onCitus: {
    readonly record: number;
    readonly interaction: number;
    /** If all interactions are of one organisation. */
    readonly interactionOfOne: number;
  };
}

export interface InteractionCost {
  readonly perSecond: number;
  readonly one: Cost;
  readonly many: Cost;
}

/** Reads costs that `npm run bench -- costs --save` wrote, or that somebody changed since. */
export function readCosts(file: string, like: Costs): Costs {
  const fail = (problem: string) =>
    commandError(`--costs ${file}: ${problem}; npm run bench -- costs --save ${file} writes it whole`);
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
  if (at !== -1) throw fail(`interactions[${at}].perSecond must be above the one before it`);
  return costs;
}

/** The first field that is not of the kind that it has in `like`; undefined if all are. */
function differenceIn(path: string, given: unknown, like: unknown): string | undefined {
  const name = path === '' ? 'it' : path;
  if (typeof like === 'number')
    return Number.isFinite(given) && (given as number) > 0 ? undefined : `${name} must be a number above 0`;
  if (typeof like === 'string')
    return typeof given === 'string' && /^[^\p{Cc}]{1,200}$/u.test(given)
      ? undefined
      : `${name} must be a line of text, at most 200 characters`;
  if (Array.isArray(like)) {
    if (!Array.isArray(given) || given.length === 0) return `${name} must be a list with an entry or more`;
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
