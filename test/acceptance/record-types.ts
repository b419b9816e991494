import { randomUUID } from 'node:crypto';
import type { Api } from '../support/api.ts';

/**
 * The fourteen record types, written a second time from the contract. If this table were derived from the server's own
 * table, a field missing there would be missing here too.
 */

export type Kind =
  | 'uuid'
  | 'text'
  | 'long text'
  | 'country'
  | 'date'
  | 'date-time'
  | 'positive amount'
  | 'non-negative amount'
  | 'amount'
  | 'latitude'
  | 'longitude'
  | 'boolean';

export interface FieldRule {
  readonly kind: Kind;
  readonly required: boolean;
  /** Only stored ids of this type are allowed as values. */
  readonly references?: string;
}

export type TestRecord = Record<string, unknown>;

const must = (kind: Kind): FieldRule => ({ kind, required: true });
const may = (kind: Kind): FieldRule => ({ kind, required: false });
const refersTo = (references: string): FieldRule => ({ kind: 'uuid', required: true, references });

const history = { created: may('date-time'), updated: may('date-time'), is_deleted: may('boolean') };

/** The first field of each type is its identifier. */
export const recordTypes: Readonly<Record<string, Readonly<Record<string, FieldRule>>>> = {
  customers: {
    customer_id: must('uuid'),
    user_id: must('uuid'),
    region: must('country'),
    birthdate: may('date'),
    institute_id: may('uuid'),
    course_id: may('uuid'),
    gender: may('text'),
    ...history,
  },
  transactions: {
    transaction_id: must('uuid'),
    shop_id: refersTo('shops'),
    region: must('country'),
    savings: must('non-negative amount'),
    amount: must('positive amount'),
    student_id: may('uuid'),
    offer_id: may('uuid'),
    branch_id: may('uuid'),
    source: may('text'),
    discount_name: may('text'),
    discount_type: may('text'),
    discount_value: may('amount'),
    ...history,
  },
  offers: {
    offer_id: must('uuid'),
    shop_id: refersTo('shops'),
    name: must('text'),
    type: must('text'),
    value: must('positive amount'),
    region: must('country'),
    allowed_from: may('date-time'),
    allowed_to: may('date-time'),
    allowed_branches: may('long text'),
    allowed_days: may('text'),
    is_enabled: may('boolean'),
    ...history,
  },
  shops: {
    shop_id: must('uuid'),
    name: must('text'),
    region: must('country'),
    is_public: may('boolean'),
    ...history,
  },
  branches: {
    branch_id: must('uuid'),
    shop_id: refersTo('shops'),
    name: must('text'),
    region: must('country'),
    latitude: may('latitude'),
    longitude: may('longitude'),
    ...history,
  },
  categories: { category_id: must('uuid'), name: must('text'), region: must('country'), ...history },
  'shop-categories': {
    shop_category_id: must('uuid'),
    shop_id: refersTo('shops'),
    category_id: refersTo('categories'),
    region: must('country'),
    ...history,
  },
  institutes: { institute_id: must('uuid'), name: must('text'), region: must('country'), ...history },
  courses: { course_id: must('uuid'), name: must('text'), ...history },
  tags: { tag_id: must('uuid'), name: must('text'), ...history },
  'shop-tags': {
    shop_tag_id: must('uuid'),
    shop_id: refersTo('shops'),
    tag_id: refersTo('tags'),
    ...history,
  },
  keywords: { keyword_id: must('uuid'), name: must('text'), ...history },
  'shop-keywords': {
    shop_keyword_id: must('uuid'),
    shop_id: refersTo('shops'),
    keyword_id: refersTo('keywords'),
    ...history,
  },
  'student-favourites': {
    student_favourite_id: must('uuid'),
    student_id: refersTo('customers'),
    shop_id: refersTo('shops'),
    ...history,
  },
};

export const fieldsOf = (type: string): [name: string, rule: FieldRule][] =>
  Object.entries(recordTypes[type]!);

export const idFieldOf = (type: string): string => Object.keys(recordTypes[type]!)[0]!;

/** Stored ids by type, for the fields that refer to them. */
export type StoredIds = Readonly<Record<string, string>>;

const ordinary: Readonly<Record<Exclude<Kind, 'uuid'>, unknown>> = {
  text: 'Ordinary words',
  'long text': 'b4b0c4a4-07f6-4a0a-9a5e-0c9b1a6d4e11',
  country: 'GB',
  date: '2001-05-17',
  'date-time': '2024-05-17T08:30:00Z',
  'positive amount': 12.5,
  'non-negative amount': 2.5,
  amount: -3.25,
  latitude: 53.8008,
  longitude: -1.5491,
  boolean: false,
};

/** Returns a valid record with a value in every field, a new id, and references from `stored`. */
export function makeRecord(type: string, stored: StoredIds = {}, changes: TestRecord = {}): TestRecord {
  const values = fieldsOf(type).map(([name, { kind, references }]) => {
    if (references !== undefined) return [name, stored[references]];
    return [name, kind === 'uuid' ? randomUUID() : ordinary[kind]];
  });
  return { ...Object.fromEntries(values), ...changes };
}

/** Returns the same record without its optional fields. */
export function requiredOnly(type: string, record: TestRecord): TestRecord {
  return Object.fromEntries(
    fieldsOf(type).flatMap(([name, rule]) => (rule.required ? [[name, record[name]]] : [])),
  );
}

/** Stores one record of every type that other types reference, and returns the ids. */
export async function storeReferenced(api: Api): Promise<StoredIds> {
  const ids: Record<string, string> = {};
  for (const type of ['shops', 'categories', 'tags', 'keywords', 'customers']) {
    const record = makeRecord(type);
    const { status } = await api.upload(type, [record]);
    if (status !== 200) throw new Error(`the ${type} that others refer to were answered with ${status}`);
    ids[type] = record[idFieldOf(type)] as string;
  }
  return ids;
}

/** Returns a number with exactly this text in JSON. JavaScript numbers cannot represent 1e400 or 0.10. */
const literal = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

const codePointsMaxOf = (kind: Kind): number => (kind === 'long text' ? 20_000 : 1_000);
const signOf = (kind: Kind): string => (kind === 'long text' ? 'é' : '🎓'); // A record cannot be 80,000 bytes long.

/** Returns the edge cases that a kind of field allows, by name. */
export function edgeValues({ kind, required }: FieldRule): Record<string, unknown> {
  const max = codePointsMaxOf(kind);
  const amounts = {
    'a tenth': 0.1,
    '1e21': literal('1e21'),
    'the smallest number': Number.MIN_VALUE,
  };
  const text = {
    [`${max} letters`]: 'x'.repeat(max),
    [`${max} ${signOf(kind)}`]: signOf(kind).repeat(max),
    'one blank': ' ',
    'a control character': '\u0001',
    ...(required ? {} : { 'an empty string': '' }),
  };
  const edges: Record<Kind, Record<string, unknown>> = {
    uuid: {
      'upper case': randomUUID().toUpperCase(),
      'all zeros': '00000000-0000-0000-0000-000000000000',
      'no known version': '01890a5d-ac96-f74b-0cce-b302099a8057',
    },
    text,
    'long text': text,
    country: { 'a code of ISO': 'DE', 'a code outside ISO': 'UK', 'lower case': 'fr' },
    date: {
      'a leap day': '2004-02-29',
      'the leap day of 2000': '2000-02-29',
      'the first year': '0001-01-01',
      'the last day': '9999-12-31',
    },
    'date-time': {
      'a leap day': '2024-02-29T23:59:59.999999Z',
      'the first year': '0001-01-01T00:00:00Z',
      'one microsecond': '2024-05-17T08:30:00.000001Z',
      'the widest offset': '2024-05-17T08:30:00+14:00',
    },
    'positive amount': amounts,
    'non-negative amount': { ...amounts, zero: 0 },
    amount: { ...amounts, zero: 0, 'a negative one': -0.01, 'the lowest number': -Number.MAX_VALUE },
    latitude: { 'the north pole': 90, 'the south pole': -90, 'the equator': 0 },
    longitude: { 'the east end': 180, 'the west end': -180, Greenwich: 0 },
    boolean: { true: true, false: false },
  };
  return edges[kind];
}

/** A value as it is sent, its expected stored form, and the nearest different value. */
export interface Form {
  readonly name: string;
  readonly sent: unknown;
  readonly kept: unknown;
  readonly other: unknown;
}

const form = (name: string, sent: unknown, kept: unknown, other: unknown): Form => ({
  name,
  sent,
  kept,
  other,
});

export function formsOf(kind: Kind): Form[] {
  const id = randomUUID();
  const nextId = id.slice(0, -1) + (id.endsWith('0') ? '1' : '0');
  const longest = 'x'.repeat(codePointsMaxOf(kind));
  const texts = [
    form('a composed letter', 'Zo\u00eb', 'Zo\u00eb', 'Zoe\u0308'),
    form('blanks around', ' Shop ', ' Shop ', 'Shop'),
    form('the greatest length', longest, longest, `${longest.slice(0, -1)}y`),
    form('capitals', 'Shop', 'Shop', 'shop'),
    form('a line break', '\r\n', '\r\n', '\n'),
    form('quotes and backslashes', `'";--\\n{}`, `'";--\\n{}`, `'";--\n{}`),
  ];
  const amounts = [
    form(
      'an exponent',
      literal('1e21'),
      literal('1000000000000000000000'),
      literal('1000000000000001000000'),
    ),
    form('a negative exponent', literal('1e-7'), literal('0.0000001'), literal('0.0000002')),
    form('a trailing zero', literal('0.10'), 0.1, 0.100000000000001),
    form('fifteen digits', 123456789012.345, 123456789012.345, 123456789012.346),
    form('the largest number', Number.MAX_VALUE, Number.MAX_VALUE, 1.7976931348623155e308),
    form('seventeen digits', 0.30000000000000004, 0.30000000000000004, 0.3),
  ];
  const minusZero = form('minus zero', literal('-0'), 0, 1e-15);
  const degrees = [form('a trailing zero', literal('51.50720'), 51.5072, 51.50720000000001), minusZero];
  const forms: Record<Kind, Form[]> = {
    uuid: [form('upper case', id.toUpperCase(), id, nextId)],
    text: texts,
    'long text': texts,
    country: [form('lower case', 'gb', 'GB', 'GC'), form('mixed case', 'uK', 'UK', 'UL')],
    date: [form('a leap day', '2004-02-29', '2004-02-29', '2004-02-28')],
    'date-time': [
      instant('an offset east', '2024-05-17T08:30:00+05:30', '2024-05-17T03:00:00'),
      instant('an offset west', '2024-05-17T08:30:00.5-11:00', '2024-05-17T19:30:00.5'),
      instant('an offset across the year', '2024-01-01T00:30:00+01:00', '2023-12-31T23:30:00'),
      instant('an offset of hours alone', '2024-05-17T08:30:00+02', '2024-05-17T06:30:00'),
      instant('no offset', '2024-05-17T08:30:00', '2024-05-17T08:30:00'),
      instant('no seconds', '2024-05-17T08:30Z', '2024-05-17T08:30:00'),
      instant('lower case', '2024-05-17t08:30:00z', '2024-05-17T08:30:00'),
      instant('microseconds', '2024-05-17T08:30:00.123450Z', '2024-05-17T08:30:00.12345'),
    ],
    'positive amount': amounts,
    'non-negative amount': [...amounts, minusZero],
    amount: [...amounts, minusZero, form('a negative one', -12.5, literal('-12.50'), -12.51)],
    latitude: degrees,
    longitude: degrees,
    boolean: [form('true', true, true, false)],
  };
  return forms[kind];
}

/** Sets `other` a microsecond later, because a record with an earlier `updated` would be skipped as stale. */
function instant(name: string, sent: string, utc: string): Form {
  const [seconds, fraction = ''] = utc.split('.');
  const kept = `${seconds}.${fraction.padEnd(6, '0')}Z`;
  return form(name, sent, kept, `${kept.slice(0, -2)}1Z`);
}

export interface BadValue extends Pick<Form, 'name' | 'sent'> {
  readonly code: string;
}

/** Returns all values that a field must refuse, each with the expected error code. */
export function badValues({ kind, required }: FieldRule): BadValue[] {
  const max = codePointsMaxOf(kind);
  const shape =
    kind.endsWith('amount') || kind.endsWith('itude') ? 'number' : kind === 'boolean' ? kind : 'string';
  const freeText = kind === 'text' || kind === 'long text';
  const emptyCode = shape === 'string' ? 'invalid_format' : 'wrong_type';
  const classes: Record<string, Record<string, unknown>> = {
    required: required ? { missing: undefined, null: null, ...(shape === 'string' && { empty: '' }) } : {},
    wrong_type: { ...wrongTypes[shape], 'an array': ['marker'], 'an object': { marker: 'marker' } },
    invalid_format: wrongFormats[kind] ?? {},
    out_of_range: outOfRange[kind] ?? {},
    too_long: freeText
      ? { 'one letter more': 'x'.repeat(max + 1), 'one sign more': signOf(kind).repeat(max + 1) }
      : {},
    invalid_characters: freeText ? badCharacters : {},
  };
  if (!required && !freeText) classes[emptyCode] = { ...classes[emptyCode], 'an empty string': '' };
  return Object.entries(classes).flatMap(([code, values]) =>
    Object.entries(values).map(([name, sent]) => ({ name, sent, code })),
  );
}

const wrongTypes = {
  string: { 'a number': 73051942, zero: 0, true: true, false: false },
  number: { 'a number in a string': '73051.42', true: true, false: false },
  boolean: { zero: 0, one: 1, 'a word': 'true' },
};

const badDays = {
  '30 February': '2023-02-30',
  '29 February of a common year': '2023-02-29',
  '29 February of 1900': '1900-02-29',
  '31 April': '2023-04-31',
  'month 13': '2023-13-01',
  'month 0': '2023-00-10',
  'day 0': '2023-01-00',
  'one digit for the month': '2023-5-17',
};
const badClocks = {
  'a blank for the T': '2023-05-17 08:30:00Z',
  'second 60': '2023-05-17T08:30:60Z',
  'minute 60': '2023-05-17T08:60:00Z',
  'hour 25': '2023-05-17T25:30:00Z',
  'offset +24:00': '2023-05-17T08:30:00+24:00',
  'offset of 60 minutes': '2023-05-17T08:30:00+01:60',
  'a day alone': '2023-05-17',
  'digits alone': '1684312200',
  'a line break at the end': '2023-05-17T08:30:00Z\n',
};
const wrongFormats: Partial<Record<Kind, Record<string, unknown>>> = {
  uuid: {
    'no hyphens': '3d2e1c6a8f0b4a579c1e7b6d5e4f3a21',
    'one hyphen missing': '3d2e1c6a8f0b-4a57-9c1e-7b6d5e4f3a21',
    'a hyphen after every four': '3d2e-1c6a-8f0b-4a57-9c1e-7b6d-5e4f-3a21',
    'a digit too few': '3d2e1c6a-8f0b-4a57-9c1e-7b6d5e4f3a2',
    'a digit too many': '3d2e1c6a-8f0b-4a57-9c1e-7b6d5e4f3a211',
    'a letter beyond f': '3d2e1c6a-8f0b-4a57-9c1e-7b6d5e4f3a2g',
    braces: '{3d2e1c6a-8f0b-4a57-9c1e-7b6d5e4f3a21}',
    'a line break at the end': '3d2e1c6a-8f0b-4a57-9c1e-7b6d5e4f3a21\n',
  },
  country: {
    'three letters': 'GBR',
    'one letter': 'G',
    'a digit': 'G1',
    'letters beyond ASCII': 'ÄÖ',
    'a blank before': ' GB',
    'a line break at the end': 'GB\n',
  },
  date: { ...badDays, 'a date-time': '2023-05-17T00:00:00Z', 'day first': '17-05-2023' },
  'date-time': {
    ...Object.fromEntries(Object.entries(badDays).map(([name, day]) => [name, `${day}T08:30:00Z`])),
    ...badClocks,
  },
};

/** Without the point, these could occur in a random id, and tests check that answers do not repeat them. */
const infinite = {
  'more than a number can be': literal('1.5e400'),
  'less than one can be': literal('-1.5e400'),
};
const negative = { 'a negative one': -0.01, 'one just below zero': -1e-300 };
const outOfRange: Partial<Record<Kind, Record<string, unknown>>> = {
  'positive amount': { ...infinite, ...negative, zero: 0, 'minus zero': literal('-0') },
  'non-negative amount': { ...infinite, ...negative },
  amount: infinite,
  latitude: { ...infinite, 'beyond a pole': 90.1, 'beyond the other': -90.1, barely: 90.00000000000001 },
  longitude: { ...infinite, 'beyond the end': 180.1, 'beyond the other': -180.1, barely: 180.00000000000003 },
};

const badCharacters = {
  NUL: 'marker\0',
  'NUL alone': '\0',
  'half a pair': 'marker\ud800',
  'the other half': '\udc00marker',
  'a pair the wrong way round': 'marker\udc00\ud800',
};
