import { hash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** A run is one upload of one or several files, which requests name and receipts show. */

let url: string;
let server: BuiltServer;
let api: Api;
let other: Api;
beforeAll(async () => {
  url = await createTestDatabase();
  server = await startBuiltServer({ DATABASE_URL: url });
  api = apiOf(server.url, await server.createKey('acme'));
  other = apiOf(server.url, await server.createKey('other'));
});
afterAll(() => server.stop());

const fileOf = (type: string, content: string = randomUUID()) => ({
  name: `${type}.csv`,
  bytes: content.length,
  sha256: hash('sha256', content),
  type,
});

const keyed = (key: string = randomUUID()) => ({ 'idempotency-key': key });

async function openRun(files: readonly object[] = [fileOf('tags')], more: object = {}): Promise<string> {
  const { status, body } = await api.post('/v1/runs', { name: 'nightly', files, ...more }, keyed());
  expect({ status, body }).toMatchObject({ status: 201 });
  return body.run_id;
}

const uploadIn = (runId: string, records: unknown[], { file = 0, first = 1, of = api, headers = {} } = {}) =>
  of.post(`/v1/data/tags?run_id=${runId}&file=${file}&first_record=${first}`, { records }, headers);

const interaction = () => ({
  interaction_type: 'SHARE',
  item_type: 'TAG',
  item_id: randomUUID(),
  event_timestamp: 1_700_000_000_000,
});

function expectCode(answer: Answer, status: number, code: string): void {
  const { details } = answer.body;
  expectError(
    answer,
    status,
    details?.map(({ field }: { field: string }) => field),
  );
  expect(answer.body.code).toBe(code);
}

const none = { received: 0, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };

describe('opening a run', () => {
  it('472: answers with the run, and again with the same one, for the same key and body', async () => {
    const sent = { name: 'nightly', client_version: '1.2.3', files: [fileOf('tags'), fileOf('shops')] };
    const headers = keyed();
    const first = await api.post('/v1/runs', sent, headers);
    expect(first).toMatchObject({
      status: 201,
      body: {
        run_id: expect.stringMatching(uuidV7),
        name: 'nightly',
        status: 'running',
        ended: null,
        client_version: '1.2.3',
        requests: 0,
        counts: none,
        files: sent.files.map((file, index) => ({ ...file, file: index, requests: 0, counts: none })),
      },
    });
    const second = await api.post('/v1/runs', sent, headers);
    expect(second).toMatchObject({ status: 200, body: { run_id: first.body.run_id } });
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expectCode(
      await api.post('/v1/runs', { ...sent, name: 'other' }, headers),
      422,
      'idempotency_key_reused',
    );
    const [foreign] = await Promise.all([other.post('/v1/runs', sent, headers)]);
    expect(foreign.status).toBe(201);
    expect(foreign.body.run_id).not.toBe(first.body.run_id);
  });

  it('472: opens one run if the same request arrives several times at once', async () => {
    const sent = { name: 'at once', files: [fileOf('interactions')] };
    const headers = keyed();
    const answers = await Promise.all(Array.from({ length: 5 }, () => api.post('/v1/runs', sent, headers)));
    expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 201]);
  });

  it.each([
    ['no name', { name: undefined }, 'name', 'required'],
    ['an empty name', { name: '' }, 'name', 'required'],
    ['a long name', { name: 'x'.repeat(201) }, 'name', 'too_long'],
    ['no files', { files: [] }, 'files', 'required'],
    ['too many files', { files: many(101, () => fileOf('tags')) }, 'files', 'too_large'],
    ['a path', { files: [{ ...fileOf('tags'), name: 'a/b.csv' }] }, 'files', 'invalid_value'],
    ['a path of Windows', { files: [{ ...fileOf('tags'), name: 'a\\b.csv' }] }, 'files', 'invalid_value'],
    ['a long file name', { files: [{ ...fileOf('tags'), name: 'x'.repeat(256) }] }, 'files', 'invalid_value'],
    ['a wrong hash', { files: [{ ...fileOf('tags'), sha256: 'x' }] }, 'files', 'invalid_value'],
    ['an unknown type', { files: [{ ...fileOf('tags'), type: 'people' }] }, 'files', 'invalid_value'],
    ['a negative size', { files: [{ ...fileOf('tags'), bytes: -1 }] }, 'files', 'invalid_value'],
    ['a number', { files: [1] }, 'files', 'invalid_value'],
    [
      'interactions twice',
      { files: [fileOf('interactions', 'x'), fileOf('interactions', 'x')] },
      'files',
      'invalid_value',
    ],
  ])('refuses %s', async (_, wrong, field, code) => {
    const answer = await api.post('/v1/runs', { name: 'n', files: [fileOf('tags')], ...wrong }, keyed());
    expectCode(answer, 400, 'invalid_request');
    expect(answer.body.details).toMatchObject([{ field, code }]);
  });

  it('does not repeat names in errors', async () => {
    const secret = 'Jane Doe/secret.csv';
    const answer = await api.post('/v1/runs', {
      name: 'n',
      [secret]: 1,
      files: [{ ...fileOf('tags'), name: secret }],
    });
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).not.toMatch(/Jane|secret/);
  });

  it('needs the permission to upload each of its types, and nothing more', async () => {
    const tags = apiOf(server.url, await server.createKey('acme', 'data:write:tags'));
    const visits = apiOf(server.url, await server.createKey('acme', 'interactions:write'));
    const reader = apiOf(server.url, await server.createKey('acme', 'data:read'));
    const open = (of: Api, type: string) =>
      of.post('/v1/runs', { name: 'n', files: [fileOf(type)] }, keyed());
    const { status, body } = await open(tags, 'tags');
    expect(status).toBe(201);
    expect((await open(visits, 'interactions')).status).toBe(201);
    for (const [of, type] of [
      [tags, 'shops'],
      [tags, 'interactions'],
      [visits, 'tags'],
      [reader, 'tags'],
    ] as const)
      expectCode(await open(of, type), 403, 'missing_permission');
    for (const action of ['end', 'heartbeat'])
      for (const of of [visits, reader])
        expectCode(
          await of.post(`/v1/runs/${body.run_id}/${action}`, { status: 'failed' }),
          403,
          'missing_permission',
        );
    expect((await reader.get(`/v1/runs/${body.run_id}`)).status).toBe(200);
    expectCode(await tags.get(`/v1/runs/${body.run_id}`), 403, 'missing_permission');
  });

  it('is refused if too many runs are open', async () => {
    const busy = apiOf(server.url, await server.createKey('busy'));
    const open = () => busy.post('/v1/runs', { name: 'n', files: [fileOf('tags')] });
    const { body } = await open();
    await queryDatabase(
      url,
      `insert into runs (organisation_id, run_id, key_id, name, files)
       select organisation_id, uuid_floor(now() - n * interval '1 second'), 'key', 'n', '[]'
       from runs cross join generate_series(1, 99) as n where run_id = '${body.run_id}'`,
    );
    expectCode(await open(), 409, 'too_many_runs');
    await busy.post(`/v1/runs/${body.run_id}/end`, { status: 'finished' });
    expect((await open()).status).toBe(201);
  });
});

describe('requests of a run', () => {
  it('473: show it in their receipts, and its counts are their sums', async () => {
    const runId = await openRun([fileOf('tags'), fileOf('tags')]);
    const known = newTag();
    const first = await uploadIn(runId, [known, { tag_id: 'no' }], { file: 0, first: 1 });
    await uploadIn(runId, [known], { file: 0, first: 3 });
    const last = await uploadIn(
      runId,
      many(1_001, () => newTag()),
      { file: 1, first: 7 },
    );
    const { body: receipt } = await api.get(`/v1/requests/${first.body.request_id}`);
    expect(receipt).toMatchObject({ run_id: runId, file: 0, first_record: 1 });
    const { body: run } = await api.get(`/v1/runs/${runId}`);
    const ofFirst = { ...none, received: 3, created: 1, unchanged: 1, failed: 1 };
    expect(run).toMatchObject({
      status: 'running',
      requests: 3,
      counts: { ...none, received: 1_004, created: 1_002, unchanged: 1, failed: 1 },
      files: [
        { file: 0, requests: 2, counts: ofFirst },
        { file: 1, requests: 1, counts: { ...none, received: 1_001, created: 1_001 } },
      ],
      reasons: [
        { type: 'tags', code: 'invalid_format', field: 'tag_id', count: 1 },
        { type: 'tags', code: 'required', field: 'name', count: 1 },
      ],
      links: { requests: `/v1/requests?run_id=${runId}`, rejections: `/v1/rejections?run_id=${runId}` },
    });
    const { body: receipts } = await api.get(run.links.requests);
    expect(receipts.requests).toHaveLength(3);
    expect(receipts.requests[0]).toMatchObject({
      request_id: last.body.request_id,
      file: 1,
      first_record: 7,
    });
    const { body: found } = await api.get(run.links.rejections);
    expect(found.rejections).toMatchObject([{ request_id: first.body.request_id, index: 1 }]);
    expect((await other.get(run.links.requests)).body.requests).toEqual([]);
    expect((await other.get(run.links.rejections)).body.rejections).toEqual([]);
    expectCode(await other.get(`/v1/runs/${runId}`), 404, 'run_not_found');
  });

  it('477: with very many failed records show the reasons of the first ones, and are no filter for rejections', async () => {
    const runId = await openRun();
    const first = await uploadIn(runId, [{ ...newTag(), name: 7 }]);
    await uploadIn(runId, [{ ...newTag(), name: null }]);
    const found = () => api.get(`/v1/rejections?run_id=${runId}`);
    expect((await found()).body.rejections).toHaveLength(2);
    const many = 'update receipts set failed = 500000 where request_id = $1';
    await queryDatabase(url, many, [first.body.request_id]);
    expect((await api.get(`/v1/runs/${runId}`)).body.reasons).toMatchObject([
      { code: 'wrong_type', field: 'name', count: 1 },
    ]);
    for (const answer of [
      await found(),
      await api.get(`/v1/rejections/summary?run_id=${runId}`),
      await api.post(`/v1/rejections/replay?run_id=${runId}`, undefined),
    ]) {
      expectCode(answer, 400, 'invalid_request');
      expect(answer.body.details).toMatchObject([{ field: 'run_id', code: 'too_large' }]);
    }
  });

  it('478: count from eight connections at once, and change nothing in the run itself', async () => {
    const runId = await openRun();
    const rowOf = () => queryDatabase(url, 'select xmin, ctid from runs where run_id = $1', [runId]);
    const before = await rowOf();
    const answers = await Promise.all(many(8, () => uploadIn(runId, [newTag()])));
    expect(answers.map(({ status }) => status)).toEqual(many(8, () => 200));
    expect(await rowOf()).toEqual(before);
    expect((await api.get(`/v1/runs/${runId}`)).body).toMatchObject({ requests: 8, counts: { created: 8 } });
  });

  it('count once if they are repeated with their Idempotency-Key', async () => {
    const runId = await openRun();
    const headers = keyed();
    const records = [newTag()];
    for (const replayed of [null, 'true']) {
      const answer = await uploadIn(runId, records, { headers });
      expect(answer.headers.get('idempotency-replayed')).toBe(replayed);
    }
    expect((await api.get(`/v1/runs/${runId}`)).body).toMatchObject({ requests: 1, counts: { created: 1 } });
    // What is stored is answered again after the end of the run too.
    await api.post(`/v1/runs/${runId}/end`, { status: 'finished' });
    const late = await uploadIn(runId, records, { headers });
    expect(late).toMatchObject({ status: 200, body: { batches: [{ data: { counts: { created: 1 } } }] } });
    expectCode(await uploadIn(runId, [newTag()], { headers: keyed() }), 409, 'run_ended');
  });

  it('have null without a run', async () => {
    const { body } = await api.upload('tags', [newTag()]);
    const { body: receipt } = await api.get(`/v1/requests/${body.request_id}`);
    expect(receipt).toMatchObject({ run_id: null, file: null, first_record: null });
  });

  it('can be interactions', async () => {
    const runId = await openRun([fileOf('interactions')]);
    await api.post(`/user-interactions/batch?run_id=${runId}&file=0`, { records: [interaction()] });
    const { body } = await api.get(`/v1/runs/${runId}`);
    expect(body).toMatchObject({ requests: 1, counts: { received: 1, failed: 1 } });
    const { body: receipts } = await api.get(`/v1/requests?run_id=${runId}`);
    expect(receipts.requests).toMatchObject([{ run_id: runId, file: 0, first_record: null }]);
  });

  it('are refused, and store nothing, if the run is unknown, foreign or has ended, or the file is wrong', async () => {
    const runId = await openRun([fileOf('tags'), fileOf('shops')]);
    const tag = newTag();
    const { body: foreign } = await other.post('/v1/runs', { name: 'n', files: [fileOf('tags')] });
    for (const id of [foreign.run_id, randomUUID()])
      expectCode(await uploadIn(id, [tag]), 404, 'run_not_found');
    for (const file of [1, 2]) {
      const answer = await uploadIn(runId, [tag], { file });
      expectCode(answer, 400, 'invalid_request');
      expect(answer.body.details).toMatchObject([{ field: 'file', code: 'invalid_value' }]);
    }
    for (const query of [
      `run_id=${runId}`,
      'file=0',
      'first_record=1',
      `run_id=${runId}&file=0&dry_run=true`,
    ])
      expectCode(await api.post(`/v1/data/tags?${query}`, { records: [tag] }), 400, 'invalid_request');
    await api.post(`/v1/runs/${runId}/end`, { status: 'finished' });
    expectCode(await uploadIn(runId, [tag]), 409, 'run_ended');
    expect((await api.get(`/v1/data/tags/${tag.tag_id}`)).status).toBe(404);
    expect((await api.get(`/v1/runs/${runId}`)).body.requests).toBe(0);
  });

  it('cannot come from pages with a browser key, which cannot open runs either', async () => {
    const origin = 'https://shop.example';
    const issued = await server.run(
      ...[
        'keys',
        'issue',
        '--organisation',
        'acme',
        '--json',
        '--label',
        'page',
        '--browser',
        '--origin',
        origin,
      ],
    );
    const { key } = JSON.parse(issued);
    const page = (path: string, body: unknown) => apiOf(server.url, key).post(path, body, { origin });
    const runId = await openRun([fileOf('interactions')]);
    const records = [interaction()];
    expectCode(
      await page('/v1/runs', { name: 'n', files: [fileOf('interactions')] }),
      403,
      'missing_permission',
    );
    const answer = await page(`/user-interactions/batch?run_id=${runId}&file=0`, { records });
    expectCode(answer, 400, 'invalid_request');
    expect(answer.body.details).toMatchObject([{ field: 'run_id', code: 'not_combinable' }]);
  });
});

/** Opens a run that looks as if it had been opened 20 minutes ago. */
async function openOldRun(files?: readonly object[]): Promise<string> {
  const aged = `
    with aged as (update runs set run_id = uuid_floor(now() - interval '20 minutes') where run_id = $1 returning run_id),
      claims as (update run_file_claims set run_id = (select run_id from aged) where run_id = $1)
    select run_id from aged`;
  const [row] = await queryDatabase<{ run_id: string }>(url, aged, [await openRun(files)]);
  return row?.run_id ?? '';
}

describe('a run that', () => {
  const statusOf = async (runId: string) => (await api.get(`/v1/runs/${runId}`)).body.status;

  it('has no requests and heartbeats for 15 minutes is interrupted, until the next one', async () => {
    const runId = await openOldRun();
    const listed = async (status: string) => {
      const { body } = await api.get(`/v1/runs?status=${status}`);
      return body.runs.some(
        ({ run_id, status: shown }: Record<string, string>) => run_id === runId && shown === status,
      );
    };
    expect(await statusOf(runId)).toBe('interrupted');
    expect([await listed('running'), await listed('interrupted')]).toEqual([false, true]);
    await uploadIn(runId, [newTag()]);
    expect(await statusOf(runId)).toBe('running');
    expect([await listed('running'), await listed('interrupted')]).toEqual([true, false]);
  });

  it('has had a heartbeat is running', async () => {
    const runId = await openOldRun();
    for (let time = 0; time < 2; time++)
      expect(await api.post(`/v1/runs/${runId}/heartbeat`, {})).toMatchObject({
        status: 200,
        body: { run_id: runId, status: 'running' },
      });
    expect(await statusOf(runId)).toBe('running');
    expect(
      (await api.get('/v1/runs?status=running')).body.runs.map(({ run_id }: { run_id: string }) => run_id),
    ).toContain(runId);
    await api.post(`/v1/runs/${runId}/end`, { status: 'failed' });
    expectCode(await api.post(`/v1/runs/${runId}/heartbeat`, {}), 409, 'run_ended');
    expectCode(await other.post(`/v1/runs/${runId}/heartbeat`, {}), 404, 'run_not_found');
  });

  it('475: has ended can be ended again in the same way only', async () => {
    const runId = await openRun([fileOf('tags'), fileOf('tags')]);
    const end = (body: object, of = api) => of.post(`/v1/runs/${runId}/end`, body);
    const files = [
      { file: 1, not_sent: 2, not_kept: 3 },
      { file: 0, not_sent: 1, not_kept: 0 },
    ];
    expectCode(
      await end({ status: 'finished', files: [{ file: 2, not_sent: 0, not_kept: 0 }] }),
      400,
      'invalid_request',
    );
    expectCode(await end({ status: 'open' }), 400, 'invalid_request');
    expectCode(await end({ status: 'finished' }, other), 404, 'run_not_found');
    const ended = await end({ status: 'finished', files });
    expect(ended).toMatchObject({
      status: 200,
      body: {
        status: 'finished',
        ended: expect.any(String),
        not_sent: 3,
        not_kept: 3,
        files: [
          { not_sent: 1, not_kept: 0 },
          { not_sent: 2, not_kept: 3 },
        ],
      },
    });
    expect(await end({ status: 'finished', files: files.toReversed() })).toMatchObject({
      status: 200,
      body: ended.body,
    });
    expectCode(await end({ status: 'finished' }), 409, 'run_ended');
    expectCode(await end({ status: 'failed', files }), 409, 'run_ended');
  });
});

describe('a file of interactions', () => {
  const opened = (content: string, more: object = {}) =>
    api.post(
      '/v1/runs',
      { name: 'n', files: [fileOf('tags'), fileOf('interactions', content)], ...more },
      keyed(),
    );

  it('476: is refused by another run, unless it is uploaded again on purpose', async () => {
    const content = randomUUID();
    const { body: first } = await opened(content);
    const refused = await opened(content);
    expectCode(refused, 409, 'file_uploaded');
    expect(refused.body.message).toContain(first.run_id);
    expect(refused.body.message).toContain(first.opened);
    expect(refused.body.details).toMatchObject([{ field: 'files[1]', code: 'file_uploaded' }]);
    expect((await opened(content, { again: true })).status).toBe(201);
    expect(
      (await other.post('/v1/runs', { name: 'n', files: [fileOf('interactions', content)] })).status,
    ).toBe(201);
    await queryDatabase(url, `update run_file_claims set claimed_at = now() - interval '401 days'`);
    expect((await opened(content)).status).toBe(201);
  });

  it('476: is released by a run that failed before any of it was stored', async () => {
    const content = randomUUID();
    const end = (runId: string) => api.post(`/v1/runs/${runId}/end`, { status: 'failed' });
    const { body: first } = await opened(content);
    await uploadIn(first.run_id, [newTag()]);
    await end(first.run_id);
    const { body: second } = await opened(content);
    await api.post(`/user-interactions/batch?run_id=${second.run_id}&file=1`, { records: [interaction()] });
    await end(second.run_id);
    expectCode(await opened(content), 409, 'file_uploaded');
    const { body: third } = await opened(content, { again: true });
    await end(third.run_id);
    expectCode(await opened(content), 409, 'file_uploaded');
  });
});

describe('a file of interactions that an interrupted run has not sent', () => {
  it('476: is released to the next run, and the interrupted one cannot send it later', async () => {
    const content = randomUUID();
    const files = [fileOf('tags'), fileOf('interactions', content)];
    const abandoned = await openOldRun(files);
    expect((await api.get(`/v1/runs/${abandoned}`)).body.status).toBe('interrupted');
    await openRun(files);
    expect((await api.get(`/v1/runs/${abandoned}`)).body.status).toBe('failed');
    const late = `/user-interactions/batch?run_id=${abandoned}&file=1`;
    expectCode(await api.post(late, { records: [interaction()] }), 409, 'run_ended');
    // The next run has the file now, and it is running.
    expectCode(await api.post('/v1/runs', { name: 'n', files }, keyed()), 409, 'file_uploaded');
  });
});

describe('the list of runs', () => {
  it('has the newest first, in pages, by name, status and time', async () => {
    const name = randomUUID();
    const ids: string[] = [];
    for (let number = 0; number < 3; number++) ids.unshift(await openRun(undefined, { name }));
    const [newest = '', middle = '', oldest = ''] = ids;
    await uploadIn(oldest, [newTag()]);
    await api.post(`/v1/runs/${middle}/end`, { status: 'finished' });
    const { body } = await api.get(`/v1/runs?name=${name}&limit=2`);
    expect(body).toMatchObject({
      runs: [
        { run_id: newest, status: 'running', file_count: 1, requests: 0 },
        { run_id: middle, status: 'finished' },
      ],
      next_cursor: middle,
    });
    const { body: rest } = await api.get(`/v1/runs?name=${name}&limit=2&cursor=${body.next_cursor}`);
    expect(rest).toMatchObject({
      runs: [{ run_id: oldest, requests: 1, counts: { created: 1 } }],
      next_cursor: null,
    });
    const { body: finished } = await api.get(`/v1/runs?name=${name}&status=finished`);
    expect(finished.runs).toMatchObject([{ run_id: middle }]);
    expect((await api.get(`/v1/runs?name=${name}&to=2026-01-01T00:00:00Z`)).body.runs).toEqual([]);
    expect((await other.get(`/v1/runs?name=${name}`)).body.runs).toEqual([]);
  });
});
