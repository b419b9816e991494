import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { Intake, type ResourceType, resourceTypes } from '../src/index.ts';
import { startHostileServer } from './support/hostile-server.ts';

/** This file checks that the library has a method for every API operation. */

const description = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
const operations = Object.entries<Record<string, { operationId?: string }>>(description.paths).flatMap(
  ([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId }]) =>
      operationId === undefined ? [] : [{ operationId, method: method.toUpperCase(), path }],
    ),
);

const id = randomUUID();
const interaction = { interaction_type: 'SHARE', item_type: 'TAG', item_id: id, event_timestamp: 1 } as const;
const first = async (items: AsyncIterable<unknown>) => {
  for await (const item of items) return item;
  return undefined;
};

type Method = (intake: Intake) => Promise<unknown>;
const methodsOf = (type: ResourceType): Record<string, Method> => ({
  [`upload-${type}`]: (intake) => intake.upload(type, [{} as never]).finish(),
  [`list-${type}`]: (intake) => first(intake.data.list(type)),
  [`get-${typeOfGet(type)}`]: (intake) => intake.data.get(type, id),
});
/** An operation on a single record has a singular name. */
const typeOfGet = (type: string) =>
  operations
    .find(({ path, method }) => method === 'GET' && path.startsWith(`/v1/data/${type}/`))
    ?.operationId.slice('get-'.length);

const methods: Readonly<Record<string, Method>> = {
  ...Object.assign({}, ...resourceTypes.map(methodsOf)),
  'get-overview': (intake) => intake.data.overview(),
  'list-changes': (intake) => first(intake.changes()),
  'list-requests': (intake) => first(intake.requests.list()),
  'count-requests': (intake) => intake.requests.daily(),
  'get-request': (intake) => intake.requests.get(id),
  'open-run': (intake) => intake.runs.open({ name: 'nightly', files: [] }, { key: id }),
  'note-heartbeat': (intake) => intake.runs.heartbeat(id),
  'end-run': (intake) => intake.runs.end(id, { status: 'failed' }),
  'list-runs': (intake) => first(intake.runs.list()),
  'get-run': (intake) => intake.runs.get(id),
  'list-rejections': (intake) => first(intake.rejections.list()),
  'discard-rejections': (intake) => intake.rejections.discard(),
  'summarise-rejections': (intake) => intake.rejections.summary(),
  'replay-rejections': (intake) => first(intake.rejections.replay()),
  'record-interaction': (intake) => intake.record(interaction),
  'list-interactions': (intake) => first(intake.interactions.list()),
  'upload-interactions': (intake) => intake.interactions.upload([interaction]).finish(),
  'get-interaction': (intake) => intake.interactions.get(id),
  'get-lake': (intake) => intake.lake.tables(),
  'list-lake-files': (intake) => first(intake.lake.files(id)),
  'download-lake-file': (intake) => intake.lake.open(id, id),
  'report-recommendations': (intake) => first(intake.reports.recommendations()),
  'erase-people': (intake) => intake.erase({ customerIds: [id] }),
  'list-erasures': (intake) => first(intake.erasures.list()),
  'get-erasure': (intake) => intake.erasures.get(id),
  'get-erasure-certificate': (intake) => intake.erasures.certificate(id),
  'list-erasure-keys': (intake) => intake.erasures.keys(),
  'lift-suppression': (intake) => intake.erasures.liftSuppression(id),
  'request-access': (intake) => intake.accessRequests.request({ customerIds: [id] }),
  'list-access-requests': (intake) => first(intake.accessRequests.list()),
  'get-access-request': (intake) => intake.accessRequests.get(id),
  'download-access-request': (intake) => first(intake.accessRequests.records(id)),
  'cancel-access-request': (intake) => intake.accessRequests.cancel(id),
  'health-live': (intake) => intake.health.live(),
  'health-ready': (intake) => intake.health.ready(),
};

it('there are operations to check', () => {
  expect(operations.length).toBeGreaterThan(50);
});

it.each(operations)(
  '$operationId has a method, which calls $method $path',
  async ({ operationId, method, path }) => {
    const call = methods[operationId];
    if (call === undefined)
      throw new Error(`the library has no method for ${operationId}: add one, and name it in this test`);
    const asked: string[] = [];
    const server = await startHostileServer(
      (outgoing, { method, url = '' }) => {
        asked.push(`${method} ${url.split('?', 1)[0]?.replaceAll(id, '{id}')}`);
        outgoing.writeHead(404).end();
      },
      { seesRuns: true },
    );
    onTestFinished(server.close);
    const intake = new Intake({ url: server.url, key: 'intake_0_0' });
    await expect(call(intake)).rejects.toMatchObject({ status: 404 });
    expect(asked).toEqual([`${method} ${path.replace(/\{\w+\}/g, '{id}')}`]);
  },
);

it('an unknown type is an error that lists the known ones', () => {
  const intake = new Intake({ url: 'http://127.0.0.1:9', key: 'intake_0_0' });
  const message = /^There is no record type "shop"\. The types are customers, .*student-favourites\.$/;
  const wrong = 'shop' as 'shops';
  for (const call of [
    () => intake.upload(wrong, []),
    () => intake.data.get(wrong, id),
    () => intake.data.list(wrong),
  ])
    expect(call).toThrow(message);
  expect(() => intake.upload('__proto__' as 'shops', [])).toThrow(TypeError);
});
