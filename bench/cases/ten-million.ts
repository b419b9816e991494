import { type Bench, bestOf, type Case, interleave, median, ratiosOf } from '../case.ts';
import { copyRate, openSessions, writeCopyFiles } from '../copy.ts';
import type { Psql } from '../psql.ts';
import { type Recipe, referencePrefix, referencesDefault } from '../records.ts';
import { bareTable, columnsOf, publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.8 };
const connectionsMax = 3;
const roundsMax = 3;
const bare = bareTable('transactions');
const table = publicTable('transactions');

/** Measures whether the ratio from the `upload-new` case stays the same when the table does not fit in the cache. */
export const tenMillion: Case = {
  name: 'ten-million',
  what: 'the ratio of upload-new with 10 million rows stored compared with 100,000',
  long: true,
  async run(bench) {
    const few = bench.rows / 2;
    const many = bench.rows * 50;
    await storeReferences(bench.cluster, [bench.tenant.organisationId], 'shops', referencesDefault);
    const sessions = await openSessions(bench, connectionsMax);
    const rounds = Math.min(bench.rounds, roundsMax);
    const withFew = await ratiosWith({ ...bench, rounds }, sessions, few);
    const withMany = await ratiosWith({ ...bench, rounds }, sessions, many);
    await bench.cluster.clean(bare, table);
    return [
      {
        name: 'ten-million',
        yardstick: `the ratio with ${few.toLocaleString('en')} rows stored`,
        unit: 'of psql \\copy',
        bare: withFew.ratios,
        intake: withMany.ratios,
        // The two sets of ratios were not measured in the same minute, so each ratio is compared with the median of the
        // other set.
        ratios: withMany.ratios.map((ratio) => ratio / median(withFew.ratios)),
        goal,
        notes: [
          `with ${few.toLocaleString('en')}: ${withFew.summary}`,
          `with ${many.toLocaleString('en')}: ${withMany.summary}`,
        ],
      },
    ];
  },
};

async function ratiosWith(
  bench: Bench,
  sessions: readonly Psql[],
  stored: number,
): Promise<{ ratios: number[]; summary: string }> {
  const { cluster, service, connections, rows } = bench;
  for (const into of [bare, table]) {
    bench.progress(`storing ${stored.toLocaleString('en')} rows in ${into}`);
    await fill(bench, into, stored);
  }
  let seed = stored;
  // The table cannot be emptied here, so every measurement adds new rows, at most a fiftieth of the number already stored.
  const withNewRows = async (measure: (recipe: Recipe) => Promise<number>) =>
    measure({ type: 'transactions', count: rows, seed: ++seed });
  const copy = (count: number) => () =>
    withNewRows(async (recipe) => {
      const files = writeCopyFiles(bench, recipe, [count]);
      await cluster.query('checkpoint');
      const rate = await copyRate(sessions, files.of(count), recipe);
      files.remove();
      return rate;
    });
  const { service: intake, ...copies } = await interleave(bench, {
    '1 connection': copy(1),
    '2 connections': copy(2),
    '3 connections': copy(3),
    service: () =>
      withNewRows(async (recipe) => {
        const requests = uploadRequests(bench, recipe);
        await cluster.query('checkpoint');
        return uploadRate({ port: service.port, connections }, requests, { created: rows });
      }),
  });
  const best = bestOf(copies);
  const perSecond = (rates: readonly number[]) => `${Math.round(median(rates)).toLocaleString('en')} rows/s`;
  return {
    ratios: ratiosOf(intake, best.rates),
    summary: `${perSecond(intake)} against ${perSecond(best.rates)} of psql \\copy, ${best.name}`,
  };
}

/**
 * Fills the table with SQL. It builds the primary key afterwards and skips the foreign key checks, so that filling
 * takes a fraction of the time. Both tables are created in the same way, so their indexes are packed alike.
 */
async function fill({ cluster, tenant }: Bench, into: string, rows: number): Promise<void> {
  const [key] = await cluster.query<{ name: string; definition: string }>(
    `select conname as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where conrelid = $1::regclass and contype = 'p'`,
    [into],
  );
  if (!key) throw new Error(`${into} has no primary key`);
  await cluster.query(`truncate ${into}`);
  await cluster.query(`alter table ${into} drop constraint ${key.name}`);
  await cluster.query(`alter table ${into} disable trigger all`);
  await cluster.query(
    `insert into ${into} (${columnsOf('transactions')})
     select $1::uuid, gen_random_uuid(),
            ($2 || lpad((1 + n % ${referencesDefault})::text, 12, '0'))::uuid,
            'GB', 2.5, 1 + n % 500, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'Online Campus 12',
            'Student Spring 345', 'Weekend North 678', 10, now(), now(), false
     from generate_series(1, $3::int) as n`,
    [tenant.organisationId, referencePrefix('shops'), rows],
  );
  await cluster.query(`alter table ${into} add constraint ${key.name} ${key.definition}`);
  await cluster.query(`alter table ${into} enable trigger all`);
  await cluster.settle(into);
}
