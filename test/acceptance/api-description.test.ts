import { readFileSync } from 'node:fs';
import { validate } from '@scalar/openapi-parser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { builtVersion } from '../support/built-version.ts';
import { type DescribedParameter, describedParameters } from '../support/described-parameters.ts';
import { MadeLake } from '../support/made-lake.ts';
import { queryDatabase } from '../support/query-database.ts';
import { lakeFolder } from '../support/running-lake.ts';
import { recordTypes } from './record-types.ts';

interface Described {
  readonly operationId: string;
  readonly security?: unknown[];
  readonly parameters?: readonly (DescribedParameter | { $ref: string })[];
  readonly requestBody?: { content: { 'application/json': { examples: { example: { value: unknown } } } } };
  readonly responses: Record<string, unknown>;
}

const committed = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
  info: object;
  paths: Record<string, Record<string, Described>>;
  components: Record<'schemas' | 'parameters', Record<string, unknown>>;
};
const operations = Object.entries(committed.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

const uploads = operations.filter(({ path, method }) => method === 'POST' && path.startsWith('/v1/data/'));

const lake = lakeFolder();
let server: BuiltServer;
let api: Api;
let fileId: string;
beforeAll(async () => {
  server = await startBuiltServer({ LAKE_URL: lake.url });
  api = apiOf(server.url, await server.createKey('acme', ...everyPermission));
  for (const part of ['set-report', 'set-lake']) await server.run('organisations', part, 'acme', 'on');
  const [row] = await queryDatabase<{ organisation_id: string }>(
    server.databaseUrl,
    'select organisation_id from organisations',
  );
  [fileId = ''] = new MadeLake(lake.path, row!.organisation_id).commit([Buffer.from('PAR1')]);
});
afterAll(async () => {
  await server?.stop();
  lake.remove();
});

it('is valid OpenAPI 3.1', async () => {
  const { valid, errors, version } = await validate(committed);
  expect(errors ?? []).toEqual([]);
  expect({ valid, version }).toEqual({ valid: true, version: '3.1' });
});

it('is public, and equals the committed one', async () => {
  const served = await apiOf(server.url).get('/openapi.json');
  expect(served.status).toBe(200);
  expect(served.body).toEqual({ ...committed, info: { ...committed.info, version: builtVersion } });
});

it('describes the uploads of all types of the contract, interactions and health', () => {
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
      'list-changes',
      'report-recommendations',
      'get-lake',
      'list-lake-files',
      'download-lake-file',
      'list-requests',
      'count-requests',
      'get-request',
      'open-run',
      'note-heartbeat',
      'end-run',
      'list-runs',
      'get-run',
      'list-rejections',
      'summarise-rejections',
      'replay-rejections',
      'discard-rejections',
      'erase-people',
      'list-erasures',
      'get-erasure',
      'get-erasure-certificate',
      'lift-suppression',
      'list-erasure-keys',
      'request-access',
      'list-access-requests',
      'get-access-request',
      'download-access-request',
      'cancel-access-request',
      'health-live',
      'health-ready',
    ]),
  );
});

it('is small enough to be read by a person and loaded by a tool', () => {
  // The limit leaves room for the access requests, the lake, runs, and a 410 response in every operation.
  expect(readFileSync(new URL('../../openapi.json', import.meta.url)).length).toBeLessThan(420_000);
});

it('limits every parameter: each text has a format, a pattern, a list of values or a length', () => {
  const parameters = operations.flatMap(({ operation }) => describedParameters(committed, operation));
  expect(parameters.length).toBeGreaterThan(50);
  for (const { name, schema } of parameters) {
    const { type, format, pattern, enum: values, maxLength, minimum, maximum } = schema;
    if (type === 'string') expect([name, format ?? pattern ?? values ?? maxLength]).not.toContain(undefined);
    if (type === 'integer') expect([name, minimum, maximum]).not.toContain(undefined);
  }
});

it('lists the codes of everything that has a code', () => {
  const withoutList: string[] = [];
  let met = 0;
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const { properties } = schema as { properties?: { code?: { enum?: unknown[]; $ref?: string } } };
    const code = properties?.code;
    const list = code?.$ref ? committed.components.schemas[code.$ref.split('/').at(-1)!] : code;
    if (code) met++;
    if (code && !(list as { enum?: unknown[] }).enum) withoutList.push(path);
    for (const [name, inner] of Object.entries(schema)) visit(inner, `${path}.${name}`);
  };
  visit(committed.components.schemas, 'schemas');
  expect(met).toBeGreaterThan(3);
  expect(withoutList).toEqual([]);
});

it('lists every status of an operation, and has no default answer', () => {
  for (const { operation } of operations) {
    const statuses = Object.keys(operation.responses);
    expect(statuses).not.toContain('default');
    expect(statuses).toEqual(expect.arrayContaining(['400', '408', '417', '431', '500', '503']));
    if (!operation.security) expect(statuses).toEqual(expect.arrayContaining(['401', '403', '429']));
  }
});

it.each(['openapi.json', 'admin-openapi.json'])(
  '27: %s lists every error code once, with its status and what to do',
  (file) => {
    const { info, components } = JSON.parse(
      readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'),
    ) as { info: { description: string }; components: { schemas: Record<string, CodedSchema> } };
    const listed = [...info.description.matchAll(/^\| `(\w+)` (\d{3}) \| [A-Z].+\. [A-Z].+\. \|$/gm)];
    const codes = components.schemas.Error?.properties.code.enum;
    expect(listed.map(([, code]) => code)).toEqual(codes);
    expect(new Set(codes).size).toBe(codes?.length);
    expect(codes?.length).toBeGreaterThan(20);
  },
);

interface CodedSchema {
  readonly properties: { readonly code: { readonly enum: readonly string[] } };
}

describe('every operation behaves like its example', () => {
  const sent = new Map<string, Answer>();

  /** Uploads every example. Referenced records must be stored first, so failed uploads are retried after the others. */
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
    // Records cannot be downloaded after the request for them was cancelled.
    const isLast = ({ operation }: (typeof operations)[number]) =>
      Number(operation.operationId === 'cancel-access-request');
    const ordered = operations.toSorted((one, other) => isLast(one) - isLast(other));
    for (const { path, method, operation } of ordered) {
      if (sent.has(operation.operationId)) continue;
      const address = path.replace(/\{(\w+)\}/g, (_, name: string) => idFor(path, name));
      const example = exampleOf(operation);
      const ask = () => (example ? api.post(address, example) : api.send(address, { method }));
      let answer = await ask();
      // If the machine stalls for two seconds, the process is briefly not ready.
      while (operation.operationId === 'health-ready' && answer.status === 503) answer = await ask();
      // These operations return an error until maintenance has run.
      while (/^(erasure_not_swept|access_request_not_done)$/.test(answer.body.code)) answer = await ask();
      sent.set(operation.operationId, answer);
    }
  });

  /** Returns an existing value for the path parameter `name`, such as an interaction's id. */
  function idFor(path: string, name: string): string {
    if (name === 'interaction_id') return sent.get('record-interaction')?.body.interaction_id;
    if (name === 'access_request_id') return sent.get('request-access')?.body.access_request_id;
    if (name === 'erasure_id') return sent.get('erase-people')?.body.erasure_id;
    if (name === 'run_id') return sent.get('open-run')?.body.run_id;
    if (name === 'table') return 'interactions';
    if (name === 'file_id') return fileId;
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

  it.each(operations.map(({ operation }) => operation))(
    '$operationId: its answer must not be cached',
    (operation) => {
      expect(sent.get(operation.operationId)?.headers.get('cache-control')).toBe('no-store');
    },
  );

  it.each(Object.keys(recordTypes))('uploaded examples of %s are read as the examples show', (type) => {
    const example = storedExampleOf(type);
    expect(sent.get(`get-${type}`)?.body).toEqual(example);
    expect(sent.get(`list-${type}`)?.body).toEqual({ records: [example], next_cursor: null });
  });

  it('an uploaded example is a created record', () => {
    for (const { operation } of uploads) {
      expect(sent.get(operation.operationId)?.body.batches[0].data.counts).toMatchObject({
        created: 1,
        failed: 0,
      });
    }
  });
});

/** Returns the example from the response schema of the operation that reads one record of this type. */
function storedExampleOf(type: string): unknown {
  const { operation } = operations.find((one) => one.operation.operationId === `get-${type}`)!;
  const { content } = operation.responses[200] as {
    content: { 'application/json': { schema: { $ref: string } } };
  };
  const name = content['application/json'].schema.$ref.replace('#/components/schemas/', '');
  return (committed.components.schemas[name] as { examples: unknown[] }).examples[0];
}

function exampleOf({ requestBody }: Described): unknown {
  return requestBody?.content['application/json'].examples.example.value;
}

it('only operations that need no key are described as public', async () => {
  const anyone = apiOf(server.url);
  for (const { path, method, operation } of operations) {
    const { status } = await anyone.send(path.replace(/\{\w+\}/, 'x'), { method });
    expect({ path, refused: status === 401 }).toEqual({ path, refused: operation.security === undefined });
  }
});
