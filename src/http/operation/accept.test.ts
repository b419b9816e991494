import { expect, it } from 'vitest';
import { accepts, jsonLines, preferredEncoding } from './accept.ts';

it.each([
  'application/x-ndjson',
  'Application/X-NDJSON',
  'application/x-ndjson; charset=utf-8',
  'application/x-ndjson, application/json',
  'application/json, application/x-ndjson',
  'application/x-ndjson, */*',
  'application/x-ndjson;q=0.5, */*;q=0.1',
  'application/json;q=0.2,application/x-ndjson ; q=0.3',
  'text/html, application/x-ndjson;q=0.001',
])('%s asks for lines', (accept) => {
  expect(accepts(jsonLines, accept)).toBe(true);
});

it.each([
  undefined,
  '',
  '*/*',
  'application/*',
  'application/json',
  'application/x-ndjson;q=0',
  'application/x-ndjson;q=0.000, */*',
  'application/x-ndjson;q=0.5, application/json',
  'application/x-ndjson;q=0.5, */*',
  'application/x-ndjson-ish',
  'text/html, ,;q=1',
])('%s does not', (accept) => {
  expect(accepts(jsonLines, accept)).toBe(false);
});

it.each([
  ['br, gzip', 'br'],
  ['gzip, deflate, br;q=0', 'gzip'],
  ['br;q=0.5, gzip;q=0.8', 'gzip'],
  ['br;q=0, gzip;q=0', 'identity'],
  ['GZIP;Q=1', 'gzip'],
  ['x-gzip', 'gzip'],
  ['*', 'br'],
  ['*;q=0.5, br;q=0', 'gzip'],
  ['*;q=0', 'identity'],
  ['identity, gzip;q=0.5', 'identity'],
  ['identity;q=0.1, gzip;q=0.1', 'gzip'],
  ['zstd, deflate', 'identity'],
  ['', 'identity'],
  [undefined, 'identity'],
])('%s is answered in %s', (accept, encoding) => {
  expect(preferredEncoding(accept)).toBe(encoding);
});
