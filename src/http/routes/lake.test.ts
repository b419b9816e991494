import { expect, it } from 'vitest';
import { byteRange } from './lake.ts';

const etag = '"a"';
const of = (range: string | undefined, more = {}, bytes = 10) => byteRange({ range, ...more }, bytes, etag);

it.each([
  ['bytes=0-0', 0, 1],
  ['bytes=2-5', 2, 6],
  ['bytes=2-', 2, 10],
  ['bytes=9-9', 9, 10],
  ['bytes=5-999999999999999', 5, 10],
  ['bytes=-3', 7, 10],
  ['bytes=-99', 0, 10],
])('%s of ten bytes', (range, from, to) => {
  expect(of(range)).toEqual({ from, to });
});

it.each([
  'bytes=',
  'bytes=-',
  'bytes=-0',
  'bytes=10-',
  'bytes=10-11',
  'bytes=5-4',
  'bytes=a-b',
  'bytes=1-2,4-5',
  'bytes= 1-2',
  'bytes=1.5-2',
  'bytes=-1-2',
  `bytes=${'9'.repeat(400)}-`,
  `bytes=${Array.from({ length: 1_000 }, (_, at) => `${at}-${at}`).join(',')}`,
])('%s is refused', (range) => {
  expect(() => of(range)).toThrow(
    expect.objectContaining({
      code: 'range_not_satisfiable',
      headers: expect.objectContaining({ 'content-range': 'bytes */10' }),
    }),
  );
});

it('no part of an empty file can be asked for', () => {
  for (const range of ['bytes=0-', 'bytes=-1', 'bytes=0-0'])
    expect(() => of(range, {}, 0)).toThrow(expect.objectContaining({ code: 'range_not_satisfiable' }));
});

it('the whole file is asked for without a range, in other units, or if the file is another one', () => {
  expect(of(undefined)).toBeUndefined();
  expect(of('rows=1-2')).toBeUndefined();
  expect(of('bytes=1-2', { 'if-range': '"b"' })).toBeUndefined();
  expect(of('bytes=1-2', { 'if-range': 'W/"a"' })).toBeUndefined();
  expect(of('bytes=1-2', { 'if-range': 'Wed, 18 Nov 2026 00:00:00 GMT' })).toBeUndefined();
  expect(of('bytes=1-2', { 'if-range': etag })).toEqual({ from: 1, to: 3 });
});
