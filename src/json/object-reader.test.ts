import fc from 'fast-check';
import { expect, it } from 'vitest';
import { limits } from '../limits.ts';
import { JsonFault } from './json-bytes.ts';
import { endOfBody, nested, ObjectReader } from './object-reader.ts';

const names = ['id', 'name', 'é', 'a"b'];
const reader = new ObjectReader(names);

function read(text: string) {
  const bytes = Buffer.from(text);
  const unknown: string[] = [];
  const result = reader.read(bytes, 0, (name) => unknown.push(name));
  endOfBody(bytes, result.end);
  return { ...result, unknown };
}

/** Returns the values of all fields: the given values for the first fields, and undefined for the rest. */
function valuesOf(...first: unknown[]) {
  return names.map((_, at) => first[at]);
}

/** Returns the result of JSON.parse in the form that a reader returns, or undefined if the text is not JSON. */
function oracle(text: string) {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
  if (!isObject) return { unreadable: 'not_an_object', values: names.map(() => undefined), unknown: [] };
  const record = parsed as Record<string, unknown>;
  const flat = (value: unknown) => (typeof value === 'object' && value !== null ? nested : value);
  return {
    unreadable: undefined,
    values: names.map((name) => flat(record[name])),
    unknown: Object.keys(record).filter((name) => !names.includes(name)),
  };
}

const value = fc.oneof(
  fc.string(),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.jsonValue({ maxDepth: 5 }),
);
const key = fc.oneof(
  fc.constantFrom(...names),
  fc.string().filter((name) => !/^\d+$/.test(name) && name !== '__proto__'),
);
const object = fc.dictionary(key, value, { maxKeys: 8 });
const text = fc
  .tuple(fc.oneof(object, fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'))
  .map(([json, space]) => JSON.stringify(json, null, space));
const snippets = [
  '"',
  ',',
  ':',
  '{',
  '}',
  '[',
  ']',
  '\\',
  '\\u00e9',
  '\\u00',
  '\\x',
  '\u0001',
  'null',
  'nul',
  'true',
  'NaN',
  '-',
  '01',
  '1.',
  '.5',
  '1e',
  '1e5',
  '\n',
  '\u00a0',
];

it('reads the same as JSON.parse', () => {
  fc.assert(
    fc.property(text, (json) => {
      expect(read(json)).toMatchObject(oracle(json) ?? {});
    }),
    { numRuns: 3_000 },
  );
});

it('fails where JSON.parse fails, at a byte up to which it could be JSON', () => {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    without: fc.integer({ min: 0, max: 3 }),
    snippet: fc.constantFrom('', ...snippets),
  });
  fc.assert(
    fc.property(text, fc.array(change, { minLength: 1, maxLength: 2 }), (json, changes) => {
      const changed = changes.reduce((before, { at, without, snippet }) => {
        const place = Math.floor(at * before.length);
        return before.slice(0, place) + snippet + before.slice(place + without);
      }, json);
      // UTF-8 cannot encode half of a surrogate pair.
      fc.pre(changed.isWellFormed());
      const expected = oracle(changed.trimStart());
      if (expected) {
        const { repeated, ...said } = read(changed.trimStart());
        if (repeated.length === 0) expect(said.values).toEqual(expected.values);
      } else expect(() => read(changed.trimStart())).toThrow(JsonFault);
    }),
    { numRuns: 5_000 },
  );
});

it.each([
  ['{"id": NaN}', 7],
  ['{"id":1,}', 8],
  ['{"id":1,,}', 8],
  ['{"id" 1}', 6],
  ['{id:1}', 1],
  ['{"id":01}', 7],
  ['{"id":1.}', 8],
  ['{"id":[1,]}', 9],
  ['{"id":{"a":1,}}', 13],
  ['{"id":"\\x"}', 8],
  ['{"id":"\\u12g4"}', 11],
  ['{"id":"a\tb"}', 8],
  ['{"id":tru}', 9],
  ['{"id":1}}', 8],
  ['{"id":1', 7],
  ['{"id":"a', 8],
])('reports that %s is not JSON at byte %i', (json, at) => {
  let fault: unknown;
  try {
    read(json);
  } catch (error) {
    fault = error;
  }
  expect(fault).toBeInstanceOf(JsonFault);
  expect((fault as JsonFault).at).toBe(at);
});

it('reports a known field that occurs twice, however it is written, and keeps the last', () => {
  expect(read('{"id":1,"\\u0069d":2,"x":1,"x":2}')).toMatchObject({
    repeated: [0],
    values: valuesOf(2),
    unknown: ['x', 'x'],
  });
});

it('continues after a value that is nested too deeply', () => {
  const deep = '['.repeat(limits.recordDepthMax) + ']'.repeat(limits.recordDepthMax);
  expect(read(`{"x":${deep},"id":7}`)).toMatchObject({
    unreadable: 'nested_too_deeply',
    values: valuesOf(7),
  });
  const allowed = deep.slice(1, -1);
  expect(read(`{"x":${allowed},"id":7}`)).toMatchObject({ unreadable: undefined, values: valuesOf(7) });
});

it('does not build objects that are too large or have too many fields', () => {
  const long = 'x'.repeat(limits.recordBytesMax);
  expect(read(`{"name":"${long}","id":7}`)).toMatchObject({
    unreadable: 'too_large',
    values: valuesOf(7, nested),
  });
  const fields = Array.from({ length: limits.fieldsPerRecordMax + 1 }, (_, at) => `"f${at}":1`).join(',');
  const { unreadable, unknown } = read(`{${fields}}`);
  expect(unreadable).toBe('too_many_fields');
  expect(unknown).toHaveLength(limits.fieldsPerRecordMax);
});
