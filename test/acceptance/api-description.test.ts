import { readFileSync } from 'node:fs';
import { validate } from '@scalar/openapi-parser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { recordTypes } from './record-types.ts';

interface Described {
  readonly operationId: string;
  readonly security?: unknown[];
  readonly parameters?: readonly { name: string; in: string; required?: boolean }[];
  readonly requestBody?: { content: { 'application/json': { examples: { example: { value: unknown } } } } };
  readonly responses: Record<string, unknown>;
}

const committed = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, Described>>;
};
const operations = Object.entries(committed.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

const uploads = operations.filter(({ path, method }) => method === 'POST' && path.startsWith('/v1/data/'));

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  api = apiOf(server.url, await server.createKey('acme'));
});
afterAll(() => server.stop());

it('is valid OpenAPI 3.1', async () => {
  const { valid, errors, version } = await validate(committed);
  expect(errors ?? []).toEqual([]);
  expect({ valid, version }).toEqual({ valid: true, version: '3.1' });
});

it('is served as it is committed, to anyone', async () => {
  const served = await apiOf(server.url).get('/openapi.json');
  expect(served.status).toBe(200);
  expect(served.body).toEqual(committed);
});

it('describes the uploads of the types that the contract has, interactions and health', () => {
  expect(uploads.map(({ path }) => path).toSorted()).toEqual(
    Object.keys(recordTypes)
      .map((type) => `/v1/data/${type}`)
      .toSorted(),
  );
  expect(operations.map(({ operation }) => operation.operationId)).toEqual(
    expect.arrayContaining([
      'record-interaction',
      'list-interactions',
      'get-interaction',
      'get-overview',
      'list-requests',
      'get-request',
      'list-rejections',
      'summarise-rejections',
      'replay-rejections',
      'discard-rejections',
      'health-live',
      'health-ready',
    ]),
  );
});

describe('every operation does what its example says', () => {
  const sent = new Map<string, Answer>();

  /** What others refer to goes first: an upload is tried again once those before it are there. */
  async function uploadExamples(): Promise<void> {
    let waiting = uploads;
    for (let round = 0; round < 3 && waiting.length > 0; round++) {
      for (const { path, operation } of waiting) {
        sent.set(operation.operationId, await api.post(path, exampleOf(operation)));
      }
      waiting = waiting.filter(({ operation }) => sent.get(operation.operationId)?.status === 400);
    }
  }

  beforeAll(async () => {
    await uploadExamples();
    for (const { path, method, operation } of operations) {
      if (sent.has(operation.operationId)) continue;
      const address = path.replace(/\{(\w+)\}/, (_, name: string) => idFor(path, name));
      const example = exampleOf(operation);
      const answer = example ? await api.post(address, example) : await api.send(address, { method });
      sent.set(operation.operationId, answer);
    }
  });

  /** The id of something that is there by now: an interaction, an upload, or a record of the type in the path. */
  function idFor(path: string, name: string): string {
    if (name === 'interaction_id') return sent.get('record-interaction')?.body.interaction_id;
    if (name === 'request_id') return sent.get('upload-shops')?.body.request_id;
    const upload = uploads.find((one) => path.startsWith(`${one.path}/`));
    const { records } = exampleOf((upload as (typeof uploads)[0]).operation) as {
      records: Record<string, string>[];
    };
    return records[0]?.[name] ?? '';
  }

  it.each(operations.map(({ operation }) => operation))('$operationId', (operation) => {
    const answer = sent.get(operation.operationId) as Answer;
    expect(answer.status).toBeLessThan(300);
    expect(Object.keys(operation.responses)).toContain(String(answer.status));
  });

  it.each(Object.keys(recordTypes))('what was uploaded of %s is read as the examples say', (type) => {
    for (const operationId of [`get-${type}`, `list-${type}`]) {
      const { operation } = operations.find((one) => one.operation.operationId === operationId)!;
      expect(sent.get(operationId)?.body).toEqual(answerExampleOf(operation));
    }
  });

  it('an example that was uploaded is a record created', () => {
    for (const { operation } of uploads) {
      expect(sent.get(operation.operationId)?.body.batches[0].data.counts).toMatchObject({
        created: 1,
        failed: 0,
      });
    }
  });
});

function answerExampleOf({ responses }: Described): unknown {
  const { content } = responses[200] as { content: Record<string, { example: unknown }> };
  return content['application/json']?.example;
}

function exampleOf({ requestBody }: Described): unknown {
  return requestBody?.content['application/json'].examples.example.value;
}

it('only what needs no key is described as needing none', async () => {
  const anyone = apiOf(server.url);
  for (const { path, method, operation } of operations) {
    const { status } = await anyone.send(path.replace(/\{\w+\}/, 'x'), { method });
    expect({ path, refused: status === 401 }).toEqual({ path, refused: operation.security === undefined });
  }
});
