import { expect, it } from 'vitest';
import { accepts, jsonLines } from './accept.ts';

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
