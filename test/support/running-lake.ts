import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import type { Api } from './api.ts';
import { servingUrl } from './database.ts';
import { untilPasses } from './until-passes.ts';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Creates a temporary folder for a lake. */
export function lakeFolder(): { readonly url: string; readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'intake-lake-'));
  return {
    url: pathToFileURL(path).href,
    path,
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Starts the built `intake-server lake`, which writes new rows after a second. */
export async function startLakeProcess(
  databaseUrl: string,
  lakeUrl: string,
  settings: Record<string, string> = {},
) {
  const env = {
    ...process.env,
    DATABASE_URL: servingUrl(databaseUrl),
    LAKE_URL: lakeUrl,
    LAKE_DELAY_SECONDS: '1',
    ...settings,
  };
  const lake = spawn(process.execPath, [main, 'lake'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const log: string[] = [];
  const lines = createInterface({ input: lake.stdout });
  lines.on('line', (line) => log.push(line));
  await Promise.race([
    once(lines, 'line'),
    once(lake, 'exit').then(() => {
      throw new Error(`the lake ended:\n${log.join('\n')}`);
    }),
  ]);
  return {
    log,
    async stop(signal: NodeJS.Signals = 'SIGTERM') {
      if (lake.exitCode !== null || lake.signalCode !== null) return;
      const closed = once(lake, 'close');
      lake.kill(signal);
      await closed;
    },
  };
}

/** Waits until the organisation's interactions table has this many rows. */
export async function untilInLake(api: Api, rows: number): Promise<void> {
  const look = async () =>
    expect((await api.get('/v1/lake')).body.tables).toContainEqual(
      expect.objectContaining({ table: 'interactions', rows }),
    );
  await untilPasses(look);
}
