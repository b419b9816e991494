import { parseArgs } from 'node:util';
import type { Case } from './case.ts';

export interface Options {
  readonly cases: readonly Case[];
  readonly quick: boolean;
  readonly rounds: number;
  readonly rows: number;
  readonly connections: number;
  readonly seconds: number;
  readonly json: string | undefined;
  readonly plot: string | undefined;
  readonly base: string | undefined;
}

/** A mistake on the command line. The user sees only its message. */
export class UsageError extends Error {}

const whole = { rounds: 5, rows: 200_000, connections: 4, seconds: 5 };
/**
 * The quick run takes less than a minute on two cores. Its small sizes and single round reduce the precision, and the floors
 * allow for that.
 */
const quick = { rounds: 1, rows: 20_000, connections: 4, seconds: 2 };

export function helpText(all: readonly Case[]): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  const list = all.map(
    ({ name, what, long }) =>
      `  ${name.padEnd(width)}  ${what}${long ? ' (only when named, or with --all)' : ''}`,
  );
  return `Measures the same work by PostgreSQL alone and through the built service, in turn.

node bench/main.ts [case ...] [options]

${list.join('\n')}

  --rounds N       measurements of each (${whole.rounds})
  --rows N         rows of an upload (${whole.rows}); the sizes of other cases follow
  --connections N  of those who upload (${whole.connections})
  --seconds N      length of a measurement that is bounded by time (${whole.seconds})
  --quick          a few cases at small sizes; fails if one falls below its floor
  --all            the long cases too
  --json FILE      writes everything that was measured
  --plot FILE      draws the ratios as SVG
  --base REF       of the cases compare and record: the version to compare this one with`;
}

/** Reads the options. Returns undefined if the user asked for help. */
export function readOptions(args: string[], all: readonly Case[]): Options | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const defaults = values.quick ? quick : whole;
  const number = (name: keyof typeof whole) => {
    const read = Number(values[name] ?? defaults[name]);
    if (Number.isInteger(read) && read > 0) return read;
    throw new UsageError(`--${name} must be a whole number above 0, not "${values[name]}"`);
  };
  const cases = selectCases(positionals, all, values);
  const isComparing = cases.some(({ name }) => name === 'compare' || name === 'record');
  if (!values.all && isComparing !== (values.base !== undefined))
    throw new UsageError(
      'compare and record need --base, and no other case takes it: npm run bench -- compare --base REF',
    );
  return {
    cases,
    quick: values.quick,
    rounds: number('rounds'),
    rows: number('rows'),
    connections: number('connections'),
    seconds: number('seconds'),
    json: values.json,
    plot: values.plot,
    base: values.base,
  };
}

function parse(args: string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const options = {
    ...{
      rounds: text,
      rows: text,
      connections: text,
      seconds: text,
      json: text,
      plot: text,
      base: text,
    },
    ...{ quick: flag, all: flag, help: flag },
  };
  try {
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function selectCases(
  names: readonly string[],
  all: readonly Case[],
  wanted: { quick: boolean; all: boolean },
): Case[] {
  const unknown = names.find((name) => !all.some((one) => one.name === name));
  if (unknown !== undefined) {
    throw new UsageError(
      `there is no case "${unknown}"; there are ${all.map(({ name }) => name).join(', ')}`,
    );
  }
  if (names.length > 0) return all.filter(({ name }) => names.includes(name));
  if (wanted.quick) return all.filter((one) => one.quick);
  return all.filter((one) => wanted.all || !one.long);
}
