import { appendFileSync, closeSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './case.ts';
import type { Psql } from './psql.ts';
import { copyLinesOf, type Recipe } from './records.ts';
import { bareTable, columnsOf } from './tables.ts';

/** Files of the same rows, cut into as many parts as there are connections. */
export interface CopyFiles {
  of(connections: number): readonly string[];
  remove(): void;
}

/** Writes them for each of the counts of connections that are wanted. */
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

/** Else the disk would be busy with it while somebody is measured. */
function writeOut(file: string): void {
  const descriptor = openSync(file, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Rows a second of `psql \copy`, one connection per file, all at once. */
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

/** How long the commands take, each on a connection of its own, all at once. */
export async function secondsOf(sessions: readonly Psql[], commands: readonly string[]): Promise<number> {
  const start = performance.now();
  await Promise.all(commands.map((command, at) => (sessions[at] as Psql).run(command)));
  return (performance.now() - start) / 1_000;
}

export async function openSessions(bench: Bench, count: number): Promise<Psql[]> {
  return Promise.all(Array.from({ length: count }, () => bench.cluster.openPsql()));
}
