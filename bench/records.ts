import type { Field } from '../src/registry/fields.ts';
import { type Resource, type ResourceType, resources, resourceTypes } from '../src/registry/resources.ts';

/** The number of referenced records per type, unless a case specifies it. */
export const referencesDefault = 500;
export const recordsPerBody = 5_000;

type Value = string | number | boolean;
type Random = () => number;

/** Returns an id that ends with the number in decimal digits, so that SQL can generate the same ids. */
export function referenceId(type: ResourceType, number: number): string {
  return `${referencePrefix(type)}${String(number).padStart(12, '0')}`;
}

/** Returns the part of a type's ids that precedes the twelve digits. */
export function referencePrefix(type: ResourceType): string {
  return `5eed00${String(resourceTypes.indexOf(type)).padStart(2, '0')}-0000-4000-8000-`;
}

export function fieldsOf(type: ResourceType): string[] {
  return Object.keys(resources[type].fields);
}

/** Returns the maximum number of records in an upload of this type. The lower limit for courses is the service's default. */
export function perBodyOf(type: ResourceType): number {
  return type === 'courses' ? 1_000 : recordsPerBody;
}

/** Describes records that are the same each time, because the seed determines the ids and everything else. */
export interface Recipe {
  readonly type: ResourceType;
  readonly count: number;
  readonly seed: number;
  /** The number of ids over which references are spread. */
  readonly references?: number;
  /** The number of records per body. Default: the maximum for an upload. */
  readonly perBody?: number;
  /** Changes a record after it is generated. Called with its number and its values in the registry's order. */
  readonly alter?: (number: number, values: Value[]) => void;
}

/** Yields records with every field filled, as values in the registry's order. */
export function* makeRecords({ type, count, seed, references, alter }: Recipe): Generator<Value[]> {
  const random = seededRandom(seed);
  const { fields }: Resource = resources[type];
  const makers = Object.entries(fields).map(([name, field]) =>
    makerOf(name, field, references ?? referencesDefault),
  );
  for (let number = 0; number < count; number++) {
    const values = makers.map((make) => make(random));
    alter?.(number, values);
    yield values;
  }
}

function makerOf(name: string, field: Field, references: number): (random: Random) => Value {
  const { minimum = 0, maximum = 500 } = field.schema as Bounds;
  if (field.references !== undefined) {
    const type = field.references as ResourceType;
    return (random) => referenceId(type, 1 + (random() % references));
  }
  switch (field.column) {
    case 'uuid':
      return randomUuid;
    case 'numeric':
      return (random) => (1 + (random() % 50_000)) / 100;
    case 'float8':
      return (random) => Math.round((minimum + (random() / 2 ** 32) * (maximum - minimum)) * 1e4) / 1e4;
    case 'bool':
      return name === 'is_deleted' ? () => false : (random) => random() % 2 === 0;
    case 'date':
      return (random) => new Date(Date.UTC(1990, 0, 1 + (random() % 6_000))).toISOString().slice(0, 10);
    case 'timestamptz':
      return (random) => new Date(Date.UTC(2024, 0, 1) + (random() % 31_536_000) * 1_000).toISOString();
    default:
      if (field.plain?.kind === 'country') return (random) => pick(countries, random);
      return (random) => `${pick(words, random)} ${pick(words, random)} ${random() % 1_000}`;
  }
}

interface Bounds {
  readonly minimum?: number;
  readonly maximum?: number;
}

const countries = ['GB', 'IE', 'FR', 'DE', 'ES', 'IT', 'NL', 'SE'];
const words = ['Corner', 'Student', 'High Street', 'Spring', 'North', 'Online', 'Weekend', 'Campus'];

function pick(from: readonly string[], random: Random): string {
  return from[random() % from.length] as string;
}

/** Returns a 32-bit xorshift generator, which is fast and returns the same sequence for the same seed. */
function seededRandom(seed: number): Random {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bf03635) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state;
  };
}

function randomUuid(random: Random): string {
  const hex = () => random().toString(16).padStart(8, '0');
  const [a, b, c, d] = [hex(), hex(), hex(), hex()];
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-8${c.slice(1, 4)}-${c.slice(4)}${d}`;
}

/** Returns the records as upload bodies. */
export function bodiesOf(recipe: Recipe): Buffer[] {
  const names = fieldsOf(recipe.type);
  const asJson = (values: Value[]) =>
    JSON.stringify(Object.fromEntries(names.map((name, at) => [name, values[at]])));
  return Array.from(inChunks(makeRecords(recipe), recipe.perBody ?? perBodyOf(recipe.type)), (records) =>
    Buffer.from(`{"records":[${records.map(asJson).join(',')}]}`),
  );
}

/** Yields the records as lines in COPY's text format, in chunks. No value contains a character that needs escaping. */
export function* copyLinesOf(recipe: Recipe, organisationId: string): Generator<string[]> {
  for (const records of inChunks(makeRecords(recipe), recordsPerBody)) {
    yield records.map((values) => `${organisationId}\t${values.join('\t')}\n`);
  }
}

function* inChunks<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let chunk: T[] = [];
  for (const item of items) {
    chunk.push(item);
    if (chunk.length < size) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
