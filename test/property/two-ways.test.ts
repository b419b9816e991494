import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { RequestError } from '../../src/errors.ts';
import { ObjectReader } from '../../src/json/object-reader.ts';
import { limits } from '../../src/limits.ts';
import { type Mode, modes } from '../../src/registry/fields.ts';
import { interactionExample } from '../../src/registry/interaction.ts';
import { resources } from '../../src/registry/resources.ts';
import { sentReferencesOf, type UploadType, uploadTypes } from '../../src/registry/upload-types.ts';
import type { CheckedBatch } from '../../src/uploads/read/batch-builder.ts';
import { makeBuilders } from '../../src/uploads/read/batch-builder.ts';
import { checkUpload } from '../../src/uploads/read/check-upload.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { sentRecord } from './records.ts';

const builders = makeBuilders();

/** Returns the complete result of a check in a comparable form. */
function saidBy(check: () => CheckedBatch[]) {
  try {
    return check().map(({ rows, referenced, sample, failedTexts, failedUpdated, ...rest }) => ({
      ...rest,
      count: rows.count,
      arrays: [...rows.arrays, ...referenced, sample, failedTexts, failedUpdated].map((array) =>
        array.toString('hex'),
      ),
    }));
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { code: error.code, message: error.message, details: error.details };
  }
}

const recordsMax = 30;
const ids = ['5a000000-0000-4000-8000-000000000001', '5a000000-0000-4000-8000-000000000002'];
const typeAndRecords = fc.constantFrom(...uploadTypes).chain((type) => {
  const referenced = Object.fromEntries(sentReferencesOf(type).map((reference) => [reference.type, ids]));
  const record = sentRecord(type, referenced).map((sent) => sent.record);
  return fc.tuple(fc.constant(type), fc.array(record, { minLength: 1, maxLength: recordsMax + 1 }));
});

/** Snippets to insert into a body. Some make the body invalid, and others only spell it differently. */
const snippets = [
  ...['"', ',', ':', '{', '}', '[', ']', '{}', '[]', '\\', '\\n', '\\u0041', '\\u0000', '\\ud800', '\u0000'],
  ...[
    'null',
    'true',
    'false',
    '0',
    '-',
    '-0',
    '01',
    '1.',
    '.5',
    '1e3',
    '1E-2',
    '12345678901234567890',
    '0.1',
  ],
  ...[
    ' ',
    '\n',
    '\t',
    '\r',
    '\u00a0',
    '\ufeff',
    'é',
    '😀',
    'A',
    'f',
    '"records"',
    '"records":[',
    '"updated":',
  ],
].map((snippet) => Buffer.from(snippet));
const change = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  without: fc.integer({ min: 0, max: 3 }),
  snippet: fc.constantFrom(...snippets, Buffer.from([0xff]), Buffer.from([0xc3]), Buffer.alloc(0)),
});

function applyTo(
  body: Buffer,
  { at, without, snippet }: typeof change extends fc.Arbitrary<infer C> ? C : never,
) {
  const place = Math.floor(at * body.length);
  return Buffer.concat([body.subarray(0, place), snippet, body.subarray(place + without)]);
}

function expectSame(type: UploadType, body: Buffer) {
  const said = (mode: Mode, mayReadFast: boolean) =>
    saidBy(() => checkUpload(builders, type, Buffer.from(body), recordsMax, { mode, mayReadFast }));
  for (const mode of type === 'interactions' ? (['replace'] as const) : modes)
    expect(said(mode, true)).toEqual(said(mode, false));
}

it('a body gets the same result whether its records may take the fast path or not', () => {
  fc.assert(
    fc.property(typeAndRecords, fc.constantFrom(undefined, 1, '\t', ' \r\n'), ([type, records], space) =>
      expectSame(type, Buffer.from(JSON.stringify({ records }, null, space))),
    ),
    propertyRuns(1_000),
  );
});

it('records as lines get the same result as in an object', () => {
  const said = (type: UploadType, body: string, isLines: boolean, mayReadFast: boolean) =>
    saidBy(() => checkUpload(builders, type, Buffer.from(body), recordsMax, { isLines, mayReadFast }));
  fc.assert(
    fc.property(typeAndRecords, fc.boolean(), ([type, records], mayReadFast) => {
      const lines = records.map((record) => `${JSON.stringify(record)}\n`).join('');
      expect(said(type, lines, true, mayReadFast)).toEqual(
        said(type, JSON.stringify({ records }), false, true),
      );
    }),
    propertyRuns(500),
  );
});

it('and so does a body that was changed somewhere', () => {
  fc.assert(
    fc.property(
      typeAndRecords,
      fc.array(change, { minLength: 1, maxLength: 3 }),
      ([type, records], changes) =>
        expectSame(type, changes.reduce(applyTo, Buffer.from(JSON.stringify({ records })))),
    ),
    propertyRuns(5_000),
  );
});

it('numbers written in any form equal the numbers of JSON.parse', () => {
  const digits = fc.stringMatching(/^\d{1,18}$/);
  const number = fc
    .tuple(
      fc.constantFrom('', '-'),
      digits,
      fc.option(digits),
      fc.constantFrom('', '', '', 'e2', 'E-3', 'e+1'),
    )
    .map(
      ([sign, whole, decimals, exponent]) =>
        `${sign}${whole}${decimals === null ? '' : `.${decimals}`}${exponent}`,
    );
  const record = JSON.stringify({ ...resources.branches.example, latitude: 0, longitude: 0 });
  fc.assert(
    fc.property(number, number, (latitude, longitude) => {
      const sent = record
        .replace('"latitude":0', `"latitude":${latitude}`)
        .replace('"longitude":0', `"longitude":${longitude}`);
      expectSame('branches', Buffer.from(`{"records":[${sent}]}`));
    }),
    propertyRuns(3_000),
  );
});

it.each(uploadTypes)('an ordinary record of %s takes the fast path', (type) => {
  const example = type === 'interactions' ? interactionExample : resources[type].example;
  const body = Buffer.from(JSON.stringify({ records: Array(limits.recordsPerBatch + 1).fill(example) }));
  const read = vi.spyOn(ObjectReader.prototype, 'read');
  expect(checkUpload(builders, type, body, limits.recordsPerRequestMax)).toHaveLength(2);
  expect(read).not.toHaveBeenCalled();
  read.mockRestore();
});
