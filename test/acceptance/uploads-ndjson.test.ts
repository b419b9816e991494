import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';

let server: SharedServer;
let api: Api;
beforeAll(async () => {
  server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme'));
});

const newTag = () => ({ tag_id: randomUUID(), name: 'vegan' });
const linesOf = (records: readonly unknown[], end = '\n') =>
  records.map((record) => JSON.stringify(record) + end).join('');

function sendLines(
  body: string | Uint8Array<ArrayBuffer>,
  headers = {},
  path = '/v1/data/tags',
): Promise<Answer> {
  return api.send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', ...headers },
    body,
  });
}

const countsOf = ({ body }: Answer) =>
  body.batches.map((batch: { data: { counts: object } }) => batch.data.counts);

it('records as lines get the same answer as in an object', async () => {
  const records = [newTag(), { tag_id: 'no' }, newTag()];
  const { status, body } = await sendLines(linesOf(records));
  expect(status).toBe(207);
  expect(body.batches[0].data).toMatchObject({
    counts: { received: 3, created: 2, failed: 1 },
    errors: [
      { index: 1, field: 'tag_id' },
      { index: 1, field: 'name' },
    ],
  });
  const again = await api.batch('tags', [records[0], records[2]]);
  expect(again.counts).toMatchObject({ unchanged: 2 });
});

it.each([
  ['Windows line ends', (records: readonly unknown[]) => linesOf(records, '\r\n')],
  ['no end of the last line', (records: readonly unknown[]) => linesOf(records).trimEnd()],
  ['empty lines', (records: readonly unknown[]) => `\n${linesOf(records, '\n\n  \n')}\n`],
  ['a byte order mark', (records: readonly unknown[]) => `\ufeff${linesOf(records)}`],
])('lines with %s are accepted', async (_, write) => {
  expect(countsOf(await sendLines(write([newTag(), newTag()])))).toMatchObject([{ received: 2, created: 2 }]);
});

it('an export can be uploaded unchanged', async () => {
  const other = apiOf(server.url, await server.createKey('other'));
  await other.batch('tags', Array.from({ length: 1_500 }, newTag));
  const exported = await other.get('/v1/data/tags', { accept: 'application/x-ndjson' });
  expect(countsOf(await sendLines(gzipSync(exported.body), { 'content-encoding': 'gzip' }))).toMatchObject([
    { received: 1_000, created: 1_000 },
    { received: 500, created: 500 },
  ]);
});

it('a retry with the same Idempotency-Key may be an object or lines', async () => {
  const records = [newTag(), newTag()];
  const key = { 'idempotency-key': randomUUID() };
  const first = await sendLines(linesOf(records), key);
  const second = await api.post('/v1/data/tags', { records }, key);
  expect(second.body).toEqual(first.body);
  expect(second.headers.get('idempotency-replayed')).toBe('true');
});

it('a line that is not JSON is reported, and nothing is stored', async () => {
  const record = newTag();
  const { status, body } = await sendLines(`${linesOf([record])}\n{"tag_id": "1", name}\n`);
  expect(status).toBe(400);
  expect(body).toMatchObject({
    code: 'malformed_json',
    message: expect.stringContaining('Line 3 of the body'),
  });
  expect((await api.get(`/v1/data/tags/${record.tag_id}`)).status).toBe(404);
});

it('two records in one line are refused', async () => {
  const { status, body } = await sendLines(JSON.stringify(newTag()) + JSON.stringify(newTag()));
  expect([status, body.code]).toEqual([400, 'malformed_json']);
});

it.each(['', '\n \n'])('no record at all, %j, is refused', async (empty) => {
  const { status, body } = await sendLines(empty);
  expect(status).toBe(400);
  expect(body.details).toMatchObject([{ field: 'records', code: 'required' }]);
});

it('more records than an upload may have are refused', async () => {
  const { status, body } = await sendLines(linesOf(Array.from({ length: 5_001 }, newTag)));
  expect(status).toBe(400);
  expect(body.details).toMatchObject([{ code: 'too_many_records' }]);
});

it('an interaction cannot be sent as lines', async () => {
  const { status, body } = await sendLines('{}\n', {}, '/user-interactions');
  expect([status, body.code]).toEqual([415, 'unsupported_media_type']);
});
