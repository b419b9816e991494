import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Bench, type Case, interleave, ratiosOf } from '../case.ts';
import { fieldsOf, makeRecords, type Recipe, referencesDefault } from '../records.ts';
import { publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.8 };
const table = publicTable('transactions');
const command = fileURLToPath(new URL('../../client/dist/command/main.js', import.meta.url));

/** What the command makes of a CSV, all told, against requests that were made before the clock started. */
export const uploadCsv: Case = {
  name: 'upload-csv',
  what: 'new transactions from a CSV by the intake command against requests made beforehand',
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    const recipe: Recipe = { type: 'transactions', count: rows, seed: 7 };
    const file = join(cluster.folder, 'transactions.csv');
    await pipeline(csvOf(recipe), createWriteStream(file));
    const requests = uploadRequests(bench, recipe);
    let peakMegabytes = 0;
    const { service: bare, command: intake } = await interleave(bench, {
      service: async () => {
        await cluster.clean(table);
        return uploadRate({ port: service.port, connections }, requests, { created: rows });
      },
      command: async () => {
        await cluster.clean(table);
        const { seconds, megabytes } = await runCommand(bench, file);
        peakMegabytes = Math.max(peakMegabytes, megabytes);
        return rows / seconds;
      },
    });
    rmSync(file);
    const notes = [`the command took ${Math.round(peakMegabytes)} MB at most`];
    const ratios = ratiosOf(intake, bare);
    const yardstick = 'the same records as requests made beforehand';
    return [{ name: 'upload-csv', yardstick, unit: 'rows/s', bare, intake, ratios, goal, notes }];
  },
};

function* csvOf(recipe: Recipe): Generator<string> {
  yield `${fieldsOf(recipe.type).join(',')}\n`;
  for (const values of makeRecords(recipe)) yield `${values.join(',')}\n`;
}

async function runCommand({ service, tenant }: Bench, file: string) {
  const env = { ...process.env, INTAKE_URL: `http://127.0.0.1:${service.port}`, INTAKE_KEY: tenant.key };
  const startedMs = performance.now();
  const child = spawn(process.execPath, [command, 'upload', file], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit').then(([code]) => ({
    code,
    seconds: (performance.now() - startedMs) / 1000,
  }));
  let megabytes = 0;
  while (child.exitCode === null && child.signalCode === null) {
    const status = readStatus(child.pid);
    megabytes = Math.max(megabytes, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024);
    await sleep(100);
  }
  const { code, seconds } = await ended;
  if (code !== 0) throw new Error(`intake upload ended with ${code}`);
  return { seconds, megabytes };
}

/** Empty once it has ended. */
function readStatus(pid: number | undefined): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}
