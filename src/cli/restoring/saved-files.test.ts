import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { auditLogIn, ledgerIn, linesFromEnd, openSaved } from './saved-files.ts';

async function fileWith(content: string): Promise<FileHandle> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-saved-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const name = join(folder, 'saved');
  writeFileSync(name, content);
  const file = await open(name);
  onTestFinished(() => file.close());
  return file;
}

async function all<T>(items: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

it('lines are read from the end, whatever the size of the blocks', async () => {
  const lines = ['{"a":1}', 'žluťoučký \u2028 kůň', '', 'x'.repeat(50), '日本語', 'y'];
  const expected = lines.filter((line) => line !== '').toReversed();
  for (const ending of ['', '\n', '\n\n'])
    for (const start of ['', '\n']) {
      const file = await fileWith(start + lines.join('\n') + ending);
      for (const blockBytes of [1, 2, 3, 7, 64, 1_000])
        expect(await all(linesFromEnd(file, blockBytes))).toEqual(expected);
    }
  expect(await all(linesFromEnd(await fileWith('')))).toEqual([]);
});

it('an audit log is read oldest first, several times, and in the format of earlier versions too', async () => {
  const entries = [3, 2, 1].map((id) => ({
    audit_id: `${id}`,
    at: '2026-01-01T00:00:00.000Z',
    actor: 'cli:root',
    act: 'key.issue',
    organisation: 'acme',
    key_id: null,
    details: { label: 'a \u2028 b' },
  }));
  const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  for (const content of [lines, JSON.stringify(entries)]) {
    const log = await auditLogIn(await fileWith(content), 'log');
    for (let pass = 0; pass < 2; pass++) expect(await all(log)).toEqual(entries.toReversed());
  }
  expect(await all(await auditLogIn(await fileWith(''), 'log'))).toEqual([]);
  for (const content of ['{', '[', 'null\n', `${lines}{}\n`])
    await expect(auditLogIn(await fileWith(content), 'log')).rejects.toThrow('log is not an audit log');
});

const entryOf = (organisation: number, hash: number) => ({
  organisation_id: `00000000-0000-7000-8000-00000000000${organisation}`,
  erasure_id: '00000000-0000-7000-8000-000000000009',
  hash: hash.toString(16).padStart(32, '0'),
});
const textOf = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('');

it('a ledger is read without its end, several times', async () => {
  const entries = [entryOf(1, 1), entryOf(1, 2), entryOf(2, 3)];
  const ledger = await ledgerIn(await fileWith(textOf(...entries, { entries: 3 })), 'ledger');
  for (let pass = 0; pass < 2; pass++) expect(await all(ledger)).toEqual(entries.toReversed());
  expect(await all(await ledgerIn(await fileWith(textOf({ entries: 0 })), 'ledger'))).toEqual([]);
  const written_at = '2026-01-01T00:00:00.000Z';
  const { writtenAt } = await ledgerIn(await fileWith(textOf({ entries: 0, written_at })), 'ledger');
  expect(writtenAt?.toISOString()).toBe(written_at);
});

it.each([
  ['', 'cut off', 'add {"entries":0}'],
  [textOf(entryOf(1, 1), entryOf(1, 2)), 'cut off', 'add {"entries":2}'],
  [textOf(entryOf(1, 1), { entries: 2 }), 'incomplete', '1 of 2'],
  [`${textOf(entryOf(1, 1))}{"entries`, 'not a complete ledger', 'not JSON'],
  [textOf({ ...entryOf(1, 1), hash: 'x' }, { entries: 1 }), 'is not a ledger', 'write it again'],
  [textOf(null, { entries: 1 }), 'is not a ledger', 'write it again'],
  [textOf({ entries: 0, written_at: 'x' }), 'is not a ledger', 'write it again'],
  [textOf(entryOf(1, 1), entryOf(2, 2), entryOf(1, 3), { entries: 3 }), 'not one ledger', 'several places'],
])('a ledger that is not whole is refused (%#)', async (content, what, how) => {
  const refused = ledgerIn(await fileWith(content), 'ledger');
  await expect(refused).rejects.toThrow(what);
  await expect(refused).rejects.toThrow(how);
});

it('only a file can be read several times', async () => {
  await expect(openSaved(tmpdir())).rejects.toThrow('not a file');
  await expect(openSaved(join(tmpdir(), 'missing', 'file'))).rejects.toThrow('cannot be read: ENOENT');
});
