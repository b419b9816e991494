import { createHash } from 'node:crypto';
import { type ResourceType, referencesOf, resources } from '../../src/registry/resources.ts';
import type { Person } from '../../test/fault/erasure-mixture/people.ts';
import type { Random } from '../../test/fault/erasure-mixture/random.ts';
import type { Sent } from '../checker/ledger.ts';
import { comparedTable, textsOf } from '../checker/stored-text.ts';
import type { Organisation } from './organisation.ts';

/** How many different ids the clients of an organisation share. The last quarter of each type is not uploaded at first. */
export const poolSizes: Readonly<Record<ResourceType, number>> = {
  shops: 80,
  categories: 40,
  tags: 40,
  keywords: 40,
  institutes: 40,
  courses: 60,
  customers: 500,
  offers: 300,
  branches: 300,
  'shop-categories': 300,
  'shop-tags': 300,
  'shop-keywords': 300,
  'student-favourites': 600,
  transactions: 3_000,
};

/** Returns an id that is the same in every organisation of the run, so that mixing them up would be noticed. */
export function idOf(seed: number, type: string, index: number): string {
  const hash = createHash('sha256').update(`${seed} ${type} ${index}`).digest('hex');
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-4${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** Indexes below this number are uploaded before anything goes wrong. */
export const baseOf = (type: ResourceType): number => Math.floor(poolSizes[type] * 0.75);

/** A record with what the oracle has to know about it. */
export interface Made {
  readonly record: Readonly<Record<string, unknown>>;
  readonly sent: Sent;
  /** The field that was made invalid, or null. */
  readonly invalid: string | null;
  /** Whether a reference leads to a record that is never uploaded, or to one that may be missing. */
  readonly isDangling: boolean;
  readonly mayDangle: boolean;
}

export interface Wanted {
  readonly index: number;
  readonly isSound?: boolean;
}

const startMs = Date.UTC(2026, 0, 1);
/** Purchases happen when interactions do, so that the report has something to credit. */
export const eventsMs = 1_790_000_000_000;

/** Makes the next version of a record. Some have an invalid field, and some refer to a missing record. */
export function makeRecord(
  organisation: Organisation,
  type: ResourceType,
  random: Random,
  { index, isSound = false }: Wanted,
): Made {
  const table = comparedTable(type);
  const version = organisation.nextVersion(table.name);
  const record: Record<string, unknown> = {};
  for (const [name, column] of Object.entries(table.fields))
    record[name] = drawValue(column, `${organisation.slug} ${version}`, random);
  record[table.id] = idOf(organisation.seed, type, index);
  record.updated = new Date(startMs + version * 1_000).toISOString();
  record.is_deleted = random.chance(0.05);
  if (type === 'transactions') record.offer_id = idOf(organisation.seed, 'offers', random.below(99));
  const refers = addReferences(organisation, type, random, record, isSound);
  const student = addPerson(organisation, type, record, index);
  const values = textsOf(table, record);
  const invalid = !isSound && random.chance(0.04) ? spoil(type, random, record) : null;
  const isBroken = invalid !== null || refers.isDangling || refers.mayDangle;
  return {
    record,
    invalid,
    ...refers,
    sent: {
      table: table.name,
      id: record[table.id] as string,
      version,
      values,
      student,
      user: null,
      isBroken,
    },
  };
}

function drawValue(column: string, mark: string, random: Random): unknown {
  if (random.chance(0.02) && column === 'text') return `${mark} “${random.hex(4)}” Zoë 😀 ',\\"{}`;
  switch (column) {
    case 'uuid':
      return random.uuid();
    case 'date':
      return `200${random.below(10)}-0${1 + random.below(9)}-1${random.below(10)}`;
    case 'timestamptz':
      return new Date(eventsMs + random.below(1_000_000_000)).toISOString();
    case 'numeric':
      return (1 + random.below(99_999)) / 100;
    case 'float8':
      return random.below(9_000) / 100;
    case 'bool':
      return random.chance(0.5);
    default:
      return mark;
  }
}

const countries = ['GB', 'DE', 'FR', 'PL'];

function addReferences(
  { seed }: Organisation,
  type: ResourceType,
  random: Random,
  record: Record<string, unknown>,
  isSound: boolean,
) {
  if ('region' in resources[type].fields) record.region = random.pick(countries);
  let [isDangling, mayDangle] = [false, false];
  for (const { field, type: target } of referencesOf(type)) {
    const roll = isSound ? 1 : random.next();
    if (roll < 0.01) {
      isDangling = true;
      record[field] = idOf(seed, `no ${target}`, random.below(1_000));
    } else if (roll < 0.05) {
      mayDangle = true;
      record[field] = idOf(seed, target, baseOf(target) + random.below(poolSizes[target] - baseOf(target)));
    } else record[field] = idOf(seed, target, random.below(baseOf(target)));
  }
  return { isDangling, mayDangle };
}

/** Adds the person whose record it is. A record belongs to the same person in all of its versions. */
function addPerson(
  { people }: Organisation,
  type: ResourceType,
  record: Record<string, unknown>,
  index: number,
): Person | null {
  if (type === 'customers') {
    const person = people[index] as Person;
    record.user_id = person.userId;
    return person;
  }
  if (type === 'transactions') {
    if (index % 5 === 0) {
      record.student_id = null;
      return null;
    }
    const person = people[index % people.length] as Person;
    record.student_id = person.customers[0];
    return person;
  }
  if (type !== 'student-favourites') return null;
  const isKnown = people.some(({ customers: [id] }) => id === record.student_id);
  if (!isKnown) return null;
  const person = people[index % baseOf('customers')] as Person;
  record.student_id = person.customers[0];
  return person;
}

/** Gives one field an invalid value, and returns its name. */
function spoil(type: ResourceType, random: Random, record: Record<string, unknown>): string {
  const fields = Object.keys(resources[type].fields).slice(1);
  const field = random.pick(fields);
  record[field] = random.pick([{ not: 'a scalar' }, ['a list']]);
  return field;
}
