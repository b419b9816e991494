import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { linesIn } from '../../src/lake/table/lines-in.ts';

/** Erasing people from the lake reads their ids from a file. An id that is skipped would leave a person in the lake. */

const folder = mkdtempSync(join(tmpdir(), 'intake-lines-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function linesOf(text: string): Promise<string[] | 'refused'> {
  const file = join(folder, 'people');
  writeFileSync(file, text);
  const lines: string[] = [];
  try {
    for await (const some of linesIn(file)) lines.push(...some);
  } catch {
    return 'refused';
  }
  return lines;
}

it('a file whose last line has no end is read completely or refused', async () => {
  expect(await linesOf('one\ntwo\n')).toEqual(['one', 'two']);
  expect([['one', 'two'], 'refused']).toContainEqual(await linesOf('one\ntwo'));
});
