import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bench, bestOf, type Case, interleave, ratiosOf } from '../case.ts';
import { openSessions, secondsOf } from '../copy.ts';
import { requestOf } from '../http-load.ts';
import { createBareInteractions, expectStored } from '../interactions.ts';
import { copyColumns, copyLineOf, pastInteraction, pastItems } from '../past-interactions.ts';
import { recordsPerBody } from '../records.ts';
import { storeReferences } from '../tables.ts';
import { uploadRate } from '../upload.ts';

const goal = { atLeast: 0.5 };
const counts = [1, 2];
const tables = ['bare.interactions', 'public.interactions'];

/**
 * Uploads several years of interactions in batches, compared with loading the same rows with COPY into a table with the
 * same indexes.
 */
export const interactionsHistory: Case = {
  name: 'interactions-history',
  what: 'interactions of the past in batches compared with psql \\copy',
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    for (const type of ['shops', 'customers'] as const)
      await storeReferences(cluster, [tenant.organisationId], type, pastItems);
    await createBareInteractions(bench);
    bench.progress('preparing files and bodies');
    const files = writeFiles(bench);
    const requests = Array.from({ length: Math.ceil(rows / recordsPerBody) }, (_, at) => {
      const size = Math.min(recordsPerBody, rows - at * recordsPerBody);
      const records = Array.from({ length: size }, (__, row) => pastInteraction(at * recordsPerBody + row));
      return requestOf('/user-interactions/batch', tenant.key, Buffer.from(JSON.stringify({ records })));
    });
    const sessions = await openSessions(bench, Math.max(...counts));
    const copy = (count: number) => async () => {
      await cluster.clean(...tables);
      const commands = (files.get(count) ?? []).map(
        (file) => `\\copy bare.interactions (${copyColumns}) from '${file}'`,
      );
      return rows / (await secondsOf(sessions, commands));
    };
    const { service: intake, ...bare } = await interleave(bench, {
      '1 connection': copy(1),
      '2 connections': copy(2),
      service: async () => {
        await cluster.clean(...tables);
        const rate = await uploadRate({ port: service.port, connections }, requests, { created: rows });
        await expectStored(bench, rows);
        return rate;
      },
    });
    for (const file of [...files.values()].flat()) rmSync(file, { force: true });
    const best = bestOf(bare);
    const line = { unit: 'rows/s', intake, goal };
    const single = bare['1 connection'];
    return [
      {
        ...line,
        name: 'interactions-history',
        yardstick: `psql \\copy, ${best.name} (the best)`,
        bare: best.rates,
        ratios: ratiosOf(intake, best.rates),
      },
      {
        ...line,
        name: 'interactions-history, single',
        yardstick: 'psql \\copy, 1 connection',
        bare: single,
        ratios: ratiosOf(intake, single),
      },
    ];
  },
};

/** Writes the same rows as files for COPY, split into one file per connection. */
function writeFiles({ cluster, tenant, rows }: Bench): Map<number, string[]> {
  const lines = Array.from({ length: rows }, (_, row) => copyLineOf(tenant, pastInteraction(row)));
  return new Map(
    counts.map((count) => {
      const size = Math.ceil(rows / count);
      const files = Array.from({ length: count }, (_, part) => {
        const file = join(cluster.folder, `interactions-${part + 1}-of-${count}.copy`);
        writeFileSync(file, lines.slice(part * size, (part + 1) * size).join(''), { flush: true });
        return file;
      });
      return [count, files];
    }),
  );
}
