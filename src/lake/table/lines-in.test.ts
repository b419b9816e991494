import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { linesIn } from './lines-in.ts';

async function read(text: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'lines-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'lines.ndjson');
  writeFileSync(file, text);
  const read: string[] = [];
  for await (const lines of linesIn(file)) read.push(...lines);
  return read;
}

it('reads every line, and splits only at line feeds', async () => {
  expect(await read('')).toEqual([]);
  expect(await read('one\ntwo\u2028three\n')).toEqual(['one', 'two\u2028three']);
});

it('fails if the last line is cut off', async () => {
  await expect(read('{"id":"one"}\n{"id":"tw')).rejects.toThrow('cut off');
});
