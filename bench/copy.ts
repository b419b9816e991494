import { appendFileSync, closeSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './case.ts';
import type { Psql } from './psql.ts';
import { copyLinesOf, type Recipe } from './records.ts';
import { bareTable, columnsOf } from './tables.ts';

/** Files with the same rows, split into one part per connection. */
export interface CopyFiles {
  of(connections: number): readonly string[];
  remove(): void;
}

/** Writes the files for each number of connections. */
export function writeCopyFiles(bench: Bench, recipe: Recipe, connections: readonly number[]): CopyFiles {
  const cuts = connections.map((count) =>
    Array.from({ length: count }, (_, part) =>
      join(bench.cluster.folder, `${recipe.type}-${recipe.seed}-${part + 1}-of-${count}.copy`),
    ),
  );
  let number = 0;
  for (const lines of copyLinesOf(recipe, bench.tenant.organisationId)) {
    for (const files of cuts) {
      const perPart = Math.ceil(recipe.count / files.length);
      for (let at = 0; at < lines.length; ) {
        const part = Math.floor((number + at) / perPart);
        const end = Math.min(lines.length, (part + 1) * perPart - number);
        appendFileSync(files[part] as string, lines.slice(at, end).join(''));
        at = end;
      }
    }
    number += lines.length;
  }
  for (const file of cuts.flat()) writeOut(file);
  return {
    of: (count) => cuts[connections.indexOf(count)] ?? [],
    remove() {
      for (const file of cuts.flat()) rmSync(file, { force: true });
    },
  };
}

/** Flushes the file to disk. Otherwise, the disk would still be busy writing it during a measurement. */
function writeOut(file: string): void {
  const descriptor = openSync(file, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Measures the rows per second with `psql \copy`, using one connection per file, all in parallel. */
export async function copyRate(
  sessions: readonly Psql[],
  files: readonly string[],
  recipe: Recipe,
): Promise<number> {
  const table = `${bareTable(recipe.type)} (${columnsOf(recipe.type)})`;
  return (
    recipe.count /
    (await secondsOf(
      sessions,
      files.map((file) => `\\copy ${table} from '${file}'`),
    ))
  );
}

/** Returns how long it takes to run the commands in parallel, each on its own connection. */
export async function secondsOf(sessions: readonly Psql[], commands: readonly string[]): Promise<number> {
  const start = performance.now();
  await Promise.all(commands.map((command, at) => (sessions[at] as Psql).run(command)));
  return (performance.now() - start) / 1_000;
}

export async function openSessions(bench: Bench, count: number): Promise<Psql[]> {
  return Promise.all(Array.from({ length: count }, () => bench.cluster.openPsql()));
}
