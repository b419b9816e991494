import { parseArgs } from 'node:util';

/** What can be fuzzed: an API description, and how it is asked. */
export interface Run {
  readonly name: string;
  readonly what: string;
  readonly api: 'public' | 'admin';
  /** Which of its operations; all, unless given. */
  readonly operations?: string;
  readonly header?: string;
  /** Which phases of Schemathesis a quick run makes; all, unless given. */
  readonly quickPhases?: string;
}

/** The admin API comes last: it revokes the keys that the others use. */
export const runs: readonly Run[] = [
  { name: 'public', what: 'the public API', api: 'public' },
  {
    name: 'export',
    what: 'its lists of records, asked for as lines of JSON',
    api: 'public',
    operations: '^list-(?!requests|rejections|interactions|changes)',
    header: 'Accept: application/x-ndjson',
    // The same parameters at their limits are part of the run of the public API.
    quickPhases: 'examples,fuzzing',
  },
  { name: 'admin', what: 'the admin API', api: 'admin' },
];

export interface Options {
  readonly runs: readonly Run[];
  readonly quick: boolean;
  readonly seed: number;
  readonly examples: number;
  readonly rounds: number;
  /** One operation alone. */
  readonly operation: string | undefined;
}

/** A mistake in the command line; the message is all there is to say. */
export class UsageError extends Error {}

const examplesDefault = 100;
/** Under three minutes on two cores, and the same for everyone: what it finds, another run finds again. */
const quick = { examples: 10, seed: 1 };

export function helpText(): string {
  const width = Math.max(...runs.map(({ name }) => name.length));
  return `Sends the built service what its API descriptions allow and what they do not, and holds the answers against them.

npm run fuzz -- [${runs.map(({ name }) => name).join('|')} ...] [options]

${runs.map(({ name, what }) => `  ${name.padEnd(width)}  ${what}`).join('\n')}

  --seed N        makes the run of that seed again (random, and printed)
  --examples N    requests that are made up per operation and phase (${examplesDefault})
  --rounds N      as many times, each with the next seed and an empty database (1)
  --operation ID  one operation alone, such as upload-shops
  --quick         ${quick.examples} examples and seed ${quick.seed}, as CI runs it

  npm run fuzz                                                everything once
  npm run fuzz -- --quick                                     what CI does
  npm run fuzz -- admin --seed 42                             the admin API as it was fuzzed with seed 42
  npm run fuzz -- public --operation upload-shops --rounds 5  one operation at length`;
}

/** Undefined where help is asked for. */
export function readOptions(args: string[]): Options | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const number = (name: 'seed' | 'examples' | 'rounds', fallback: number) => {
    const read = Number(values[name] ?? fallback);
    if (Number.isInteger(read) && read > 0) return read;
    throw new UsageError(`--${name} must be a whole number above 0, not "${values[name]}"`);
  };
  const unknown = positionals.find((name) => !runs.some((one) => one.name === name));
  if (unknown !== undefined)
    throw new UsageError(`there is no "${unknown}"; there are ${runs.map(({ name }) => name).join(', ')}`);
  if (values.operation !== undefined && positionals.length !== 1)
    throw new UsageError('with --operation name what has it, such as: public --operation upload-shops');
  return {
    runs: runs.filter(({ name }) => positionals.length === 0 || positionals.includes(name)),
    quick: values.quick,
    seed: number('seed', values.quick ? quick.seed : Math.ceil(Math.random() * 1_000_000)),
    examples: number('examples', values.quick ? quick.examples : examplesDefault),
    rounds: number('rounds', 1),
    operation: values.operation,
  };
}

function parse(args: string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const options = { seed: text, examples: text, rounds: text, operation: text, quick: flag, help: flag };
  try {
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
