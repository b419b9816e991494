import { parseArgs } from 'node:util';

/** One run of the fuzzer: an API description, and how to call that API. */
export interface Run {
  readonly name: string;
  readonly what: string;
  readonly api: 'public' | 'admin';
  /** A filter for the operations to test. Default: all. */
  readonly operations?: string;
  readonly header?: string;
  /** The Schemathesis phases in a quick run. Default: all. */
  readonly quickPhases?: string;
}

/** The admin API comes last, because it revokes the keys that the other runs use. */
export const runs: readonly Run[] = [
  { name: 'public', what: 'the public API', api: 'public' },
  {
    name: 'export',
    what: 'its lists of records, requested as lines of JSON',
    api: 'public',
    operations: '^list-(?!requests|rejections|interactions|changes)',
    header: 'Accept: application/x-ndjson',
    // The run for the public API already tests the same parameters at their limits.
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
  /** The only operation to test, if specified. */
  readonly operation: string | undefined;
}

/** A mistake on the command line. The user sees only its message. */
export class UsageError extends Error {}

const examplesDefault = 100;
/** The quick run takes less than three minutes on two cores. It is deterministic, so another run finds the same problems. */
const quick = { examples: 10, seed: 1 };

export function helpText(): string {
  const width = Math.max(...runs.map(({ name }) => name.length));
  return `Sends the built service what its API descriptions allow and what they do not, and holds the answers against them.

npm run fuzz -- [${runs.map(({ name }) => name).join('|')} ...] [options]

${runs.map(({ name, what }) => `  ${name.padEnd(width)}  ${what}`).join('\n')}

  --seed N        makes the run of that seed again (random, and printed)
  --examples N    requests that are made up per operation and phase (${examplesDefault})
  --rounds N      repeat N times, each with the next seed and an empty database (1)
  --operation ID  one operation alone, such as upload-shops
  --quick         ${quick.examples} examples and seed ${quick.seed}, as CI runs it

  npm run fuzz                                                everything once
  npm run fuzz -- --quick                                     what CI does
  npm run fuzz -- admin --seed 42                             the admin API as it was fuzzed with seed 42
  npm run fuzz -- public --operation upload-shops --rounds 5  one operation at length`;
}

/** Reads the options. Returns undefined if the user asked for help. */
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
