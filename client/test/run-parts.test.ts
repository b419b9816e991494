import { hash, randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { many, newTag } from '../../test/support/new-records.ts';
import { Connection } from '../src/connection.ts';
import { Intake } from '../src/index.ts';
import { type Cut, RequestCutter } from '../src/uploading/request-cutter.ts';
import { endingOf, fileInRun, runNameOf } from '../src/uploading/run-of-files.ts';
import { type FileOfRun, sendCuts } from '../src/uploading/send-cuts.ts';

/** The requests of an upload name its run, its file, and the number of their first record in the file. */

let server: BuiltServer;
let intake: Intake;
let key: string;

beforeAll(async () => {
  server = await startBuiltServer({ RECORDS_PER_REQUEST_MAX: '3', BODY_BYTES_MAX: '65536' });
  key = await server.createKey('parts');
  intake = new Intake({ url: server.url, key });
  return () => server.stop();
});

const file = (name: string) => fileInRun(`exports/${name}`, 1, hash('sha256', randomUUID()), 'tags');

async function openRun(): Promise<FileOfRun> {
  const opening = { name: 'parts', files: [file('shops.csv'), file('tags.csv')] };
  const { run_id: runId } = await intake.runs.open(opening, { key: randomUUID() });
  return { runId, file: 1 };
}

/** Records, of which undefined ones are not sent. */
async function* cutsOf(records: readonly unknown[], first = 0): AsyncGenerator<Cut<undefined>> {
  const cutter = new RequestCutter<undefined>('tags', { first, recordsMax: 8 });
  for (const record of records) {
    const cut = record === undefined ? cutter.skip() : cutter.add(undefined, record);
    if (cut) yield cut;
  }
  const last = cutter.take();
  if (last) yield last;
}

async function send(records: readonly unknown[], run: FileOfRun, { first = 0, dryRun = false } = {}) {
  const connection = new Connection({ url: server.url, key });
  const options = { key: randomUUID(), run, dryRun };
  let notKept = 0;
  for await (const { outcome } of sendCuts(connection, 'tags', cutsOf(records, first), options))
    notKept += outcome.notKept;
  return notKept;
}

async function receiptsOf({ runId }: FileOfRun) {
  const parts: unknown[] = [];
  for await (const one of intake.requests.list({ run_id: runId }))
    parts.push([one.file, one.first_record, one.counts.received]);
  return parts.toSorted();
}

it('requests name the number of their first record, if they are split and records are left out', async () => {
  const run = await openRun();
  const records = [undefined, newTag(), newTag(), undefined, ...many(5, () => newTag()), undefined];
  await send([...records, undefined, newTag()], run, { first: 100 });
  expect(await receiptsOf(run)).toEqual([
    [1, 102, 2],
    [1, 105, 2],
    [1, 107, 2],
    [1, 109, 2],
  ]);
});

it('a record that is too large for a request counts as not kept, and no receipt counts it', async () => {
  const run = await openRun();
  const large = newTag({ note: 'x'.repeat(70_000) });
  expect(await send([newTag(), large, newTag()], run)).toBe(1);
  const ending = endingOf([{ file: 1, notSent: 0, notKept: 1, isWhole: true }]);
  expect(await intake.runs.end(run.runId, ending)).toMatchObject({
    status: 'finished',
    counts: { received: 2, created: 2, failed: 0 },
    not_kept: 1,
    files: [
      { requests: 0, not_kept: 0 },
      { counts: { created: 2 }, not_sent: 0, not_kept: 1 },
    ],
  });
  await expect(send([newTag()], run)).rejects.toMatchObject({ code: 'run_ended' });
  await expect(send([newTag()], { runId: randomUUID(), file: 0 })).rejects.toMatchObject({
    code: 'run_not_found',
  });
});

it('a part of a file has no numbers, and a dry run names no run', async () => {
  const run = await openRun();
  await send([newTag()], run, { dryRun: true });
  await send([newTag()], { ...run, isPart: true });
  expect(await receiptsOf(run)).toEqual([[1, null, 1]]);
});

it.each([
  [{ notSent: 0, isWhole: true }, 'finished'],
  [{ notSent: 1, isWhole: true }, 'failed'],
  [{ notSent: 0, isWhole: false }, 'failed'],
])('a run fails if a part of a file stays with the client: %j', (end, status) => {
  const whole = { file: 0, notSent: 0, notKept: 0, isWhole: true };
  expect(endingOf([whole, { file: 1, notKept: 2, ...end }])).toEqual({
    status,
    files: [
      { file: 0, not_sent: 0, not_kept: 0 },
      { file: 1, not_sent: end.notSent, not_kept: 2 },
    ],
  });
});

it('names of runs and files contain no folder', () => {
  expect(file('tags.csv').name).toBe('tags.csv');
  expect(fileInRun('C:\\Jane\\tags.csv', 1, '', 'tags').name).toBe('tags.csv');
  expect(
    ['exports/', '/a/exports', 'a/shops.csv.gz', 'visits.2026-03.ndjson', '.csv'].map(runNameOf),
  ).toEqual(['exports', 'exports', 'shops', 'visits.2026-03', '.csv']);
  expect(Array.from(runNameOf('ä'.repeat(300)))).toHaveLength(200);
});
