import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { Intake } from '../src/index.ts';
import { startHostileServer } from './support/hostile-server.ts';

/** This file tests what a malicious server can do to the folder that a pull writes to. */

const content = randomBytes(5_000);
const sha256 = createHash('sha256').update(content).digest('hex');
const name = randomUUID();
const file = { file_id: name, partition: { day: '2026-03-14' }, rows: 1, bytes: content.length, sha256 };
const page = {
  ...{ table: 'interactions', version: 1, table_id: randomUUID(), description: '', schema: '{}' },
  ...{ partition_columns: ['day'], files: [file], next_cursor: null },
};
const table = {
  table: 'interactions',
  state: 'following',
  version: 1,
  rows: 1,
  bytes: 1,
  files: 1,
  as_of: null,
};

let cwd: string;
let folder: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'intake-hostile-lake-'));
  folder = join(cwd, 'lake');
  return () => rmSync(cwd, { recursive: true });
});

type SendFile = (outgoing: ServerResponse, incoming: IncomingMessage) => void;

const whole: SendFile = (outgoing) =>
  void outgoing.writeHead(200, { 'content-type': 'application/vnd.apache.parquet' }).end(content);

async function pullFrom(
  { tables = [table], files = page }: { tables?: unknown; files?: unknown },
  sendFile = whole,
) {
  const server = await startHostileServer((outgoing, incoming) => {
    const { url = '' } = incoming;
    if (/\/files\/./.test(url)) return sendFile(outgoing, incoming);
    const body = url.endsWith('/v1/lake') ? { tables, notice: null } : files;
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  onTestFinished(server.close);
  const intake = new Intake({ url: server.url, key: 'intake_0_0', retryForMs: 500, onRetry: () => {} });
  return intake.lake.pull(folder);
}

/** Checks that the pull wrote nothing outside the folder. */
function expectNothingElse(): void {
  expect(readdirSync(cwd).filter((one) => one !== 'lake')).toEqual([]);
}

it('a good one is copied', async () => {
  expect(await pullFrom({})).toMatchObject([{ table: 'interactions', files: 1, filesDownloaded: 1 }]);
  expect(existsSync(join(folder, `interactions/day=2026-03-14/${name}.parquet`))).toBe(true);
});

it.each([
  '..',
  '../outside',
  '/tmp/outside',
  'a/b',
  'a\\b',
  '.hidden',
  '_delta_log',
  '',
  'A',
  'x'.repeat(64),
  7,
  null,
  '__proto__',
  'constructor/../../x',
])('a table named %j is refused', async (wrong) => {
  await expect(pullFrom({ tables: [{ ...table, table: wrong }] })).rejects.toMatchObject({
    code: 'unexpected_answer',
  });
  expectNothingElse();
});

it.each([
  ['a path for an id', { file_id: '../../../outside' }],
  ['an id with a slash', { file_id: `${name}/x` }],
  ['an id in capitals', { file_id: name.toUpperCase() }],
  ['no id', { file_id: undefined }],
  ['a partition that leads elsewhere', { partition: { day: '../..' } }],
  ['an absolute partition', { partition: { day: '/tmp' } }],
  ['a partition with a backslash', { partition: { day: '..\\x' } }],
  ['a partition with a NUL', { partition: { day: 'a\0b' } }],
  ['an empty partition', { partition: { day: '' } }],
  ['no partition', { partition: {} }],
  ['a partition by a prototype', { partition: 'day' }],
  ['a negative size', { bytes: -1 }],
  ['half a byte', { bytes: 1.5 }],
  ['no rows', { rows: '1' }],
  ['an invalid checksum', { sha256: 'x' }],
  ['no checksum', { sha256: null }],
])('a file with %s is refused', async (_, wrong) => {
  await expect(pullFrom({ files: { ...page, files: [{ ...file, ...wrong }] } })).rejects.toMatchObject({
    code: 'unexpected_answer',
  });
  expectNothingElse();
  expect(existsSync(join(folder, 'interactions'))).toBe(false);
});

it.each([
  ['a partition column that leads elsewhere', { partition_columns: ['../x'] }],
  ['a partition column of Delta Lake', { partition_columns: ['_delta_log/x'] }],
  ['a partition column from the prototype', { partition_columns: ['toString'] }],
  ['two partition columns', { partition_columns: ['day', 'hour'] }],
  ['the same file twice', { files: [file, file] }],
  ['no version', { version: null }],
  ['no schema', { schema: {} }],
  ['no files', { files: null }],
  ['pages without an end', { next_cursor: 'again' }],
])('a list with %s is refused', async (_, wrong) => {
  await expect(pullFrom({ files: { ...page, ...wrong } })).rejects.toMatchObject({
    code: 'unexpected_answer',
  });
  expectNothingElse();
});

it('a table that changes while its files are listed is listed again', async () => {
  let lists = 0;
  const server = await startHostileServer((outgoing, { url = '' }) => {
    if (/\/files\/./.test(url)) return whole(outgoing, {} as IncomingMessage);
    const isGone = url.includes('/files?') && lists++ === 0;
    const gone = { code: 'lake_version_gone', message: 'The table has changed.' };
    const body = isGone ? gone : url.endsWith('/v1/lake') ? { tables: [table], notice: null } : page;
    outgoing.writeHead(isGone ? 410 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  onTestFinished(server.close);
  const intake = new Intake({ url: server.url, key: 'intake_0_0' });
  expect(await intake.lake.pull(folder)).toMatchObject([{ files: 1 }]);
  expect(lists).toBe(2);
});

it('bytes without end are cut off, and others are not kept', async () => {
  const endless: SendFile = (outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/vnd.apache.parquet' });
    const send = () => {
      while (!outgoing.destroyed && outgoing.write(content));
    };
    outgoing.on('drain', send);
    send();
  };
  await expect(pullFrom({}, endless)).rejects.toMatchObject({ code: 'unexpected_answer' });
  const other: SendFile = (outgoing) =>
    void outgoing
      .writeHead(200, { 'content-type': 'application/vnd.apache.parquet' })
      .end(randomBytes(content.length));
  await expect(pullFrom({}, other)).rejects.toThrow(/does not have the checksum/);
  expect(readdirSync(join(folder, 'interactions'))).toEqual(['_delta_log', '_pull']);
  expect(readdirSync(join(folder, 'interactions/_delta_log'))).toEqual([]);
});

it('a part of a file is never taken for another part, nor for the whole', async () => {
  const part = join(folder, 'interactions/_pull', name);
  mkdirSync(join(folder, 'interactions/_pull'), { recursive: true });
  writeFileSync(part, content.subarray(0, 1_000));
  const otherRange: SendFile = (outgoing) =>
    void outgoing
      .writeHead(206, {
        'content-type': 'application/vnd.apache.parquet',
        'content-range': `bytes 0-3999/${content.length}`,
      })
      .end(content.subarray(0, 4_000));
  await expect(pullFrom({}, otherRange)).rejects.toThrow(/different range/);
  // A server that ignores ranges sends the whole file.
  expect(await pullFrom({})).toMatchObject([{ filesDownloaded: 1 }]);
  // The pull gives up on a server that always ends the file too early.
  rmSync(join(folder, 'interactions/day=2026-03-14'), { recursive: true });
  const short: SendFile = (outgoing) =>
    void outgoing
      .writeHead(200, { 'content-type': 'application/vnd.apache.parquet' })
      .end(content.subarray(0, 10));
  await expect(pullFrom({}, short)).rejects.toMatchObject({ code: 'connection_failed' });
});
