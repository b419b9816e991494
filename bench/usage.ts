import { numberForAll } from '../src/changes/change-retention.ts';
import { readConfig } from '../src/config.ts';
import { createPool } from '../src/postgres/pool.ts';
import type { Bench } from './case.ts';
import { cpuSecondsOfEach } from './cpu-time.ts';

/** The resources used by some work: CPU seconds, bytes of WAL, and bytes in tables. */
export interface Usage {
  readonly service: number;
  readonly postgres: number;
  readonly wal: number;
  readonly records: number;
  readonly recordKeys: number;
  readonly interactions: number;
  readonly receipts: number;
  readonly changes: number;
}

/**
 * Measures the resources that some work uses on empty tables, without counting the tables' initial pages. The changes
 * are numbered after the work, as maintenance does every ten seconds. The WAL that the numbering writes is counted. The
 * numbering's CPU time is not counted, because it depends on how many changes are numbered together.
 */
export async function usageOf(bench: Bench, work: () => Promise<unknown>): Promise<Usage> {
  await bench.cluster.clean('transactions', 'interactions', 'receipts', 'receipt_batches', 'changes');
  const before = { ...(await readings(bench)), wal: await walPosition(bench.cluster) };
  await work();
  const after = await readings(bench);
  await numberChanges(bench);
  const all = { ...after, wal: await walPosition(bench.cluster) };
  const names = Object.keys(all) as (keyof Usage)[];
  return Object.fromEntries(names.map((name) => [name, all[name] - before[name]])) as unknown as Usage;
}

async function readings(bench: Bench): Promise<Omit<Usage, 'wal'>> {
  const cpu = cpuSecondsOfEach(bench);
  const [sizes = {}] = await bench.cluster.query<Record<string, string>>(
    `select pg_table_size('transactions') as records,
            pg_indexes_size('transactions') as "recordKeys",
            ${totalSize('interactions')} as interactions,
            ${totalSize('receipts')} + ${totalSize('receipt_batches')} as receipts,
            ${totalSize('changes')} as changes`,
  );
  const bytes = Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, Number(size)]));
  return { ...cpu, ...(bytes as Omit<Usage, keyof typeof cpu | 'wal'>) };
}

async function walPosition(cluster: Bench['cluster']): Promise<number> {
  const [row] = await cluster.query<{ bytes: string }>(`select pg_current_wal_insert_lsn() - '0/0' as bytes`);
  return Number(row?.bytes);
}

/**
 * Numbers the changes without waiting for the disk. A thousand organisations need a thousand commits, and the time for these
 * is not measured.
 */
async function numberChanges({ cluster }: Bench): Promise<void> {
  const url = new URL(cluster.url);
  url.searchParams.set('options', '-c synchronous_commit=off');
  const pool = createPool(readConfig({ DATABASE_URL: url.href }), () => {});
  try {
    await numberForAll(pool);
  } finally {
    await pool.end();
  }
}

/**
 * Holds the maintenance lease while the work runs, because maintenance would affect one measurement and not the next.
 * The service notices that it has lost the lease when it tries to renew it, which happens during the warm-up.
 */
export async function withoutMaintenance<T>({ cluster }: Bench, work: () => Promise<T>): Promise<T> {
  const leaseFor = (period: string) =>
    cluster.query(
      `insert into leases (name, holder, ends_at) values ('maintenance', gen_random_uuid(), now() + $1::interval)
       on conflict (name) do update set holder = excluded.holder, ends_at = excluded.ends_at`,
      [period],
    );
  await leaseFor('1 day');
  try {
    return await work();
  } finally {
    await leaseFor('0 seconds');
  }
}

function totalSize(parent: string): string {
  return `(select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = '${parent}'::regclass)`;
}

const dayMs = 24 * 3_600_000;

/**
 * Measures the cost per interaction of building the indexes when a day is over. It copies stored interactions to the
 * day before yesterday, and the service's own function builds that day's indexes again.
 */
export async function indexingUsage({
  cluster,
  service,
}: Bench): Promise<{ postgres: number; wal: number; bytes: number }> {
  const [day] = await cluster.query<{ name: string }>(
    `select name from interaction_partitions
     where uuid_floor(now() - interval '2 days') >= first_id and uuid_floor(now() - interval '2 days') < end_id`,
  );
  if (!day) throw new Error('there is no partition of two days ago');
  const indexes = await cluster.query<{ name: string }>(
    `select indexrelid::regclass::text as name from pg_index where indrelid = $1::regclass and not indisprimary`,
    [day.name],
  );
  for (const { name } of indexes) await cluster.query(`drop index ${name}`);
  await cluster.query('update interaction_partitions set is_indexed = false where name = $1', [day.name]);
  const [columns] = await cluster.query<{ names: string }>(
    `select string_agg(attname, ', ' order by attnum) as names from pg_attribute
     where attrelid = 'interactions'::regclass and attnum > 0 and attname <> 'interaction_id'`,
  );
  await cluster.query(
    `insert into interactions (interaction_id, ${columns?.names})
     select overlay(interaction_id::text placing
              regexp_replace(lpad(to_hex(('x' || left(replace(interaction_id::text, '-', ''), 12))::bit(48)::bigint - ${2 * dayMs}), 12, '0'), '(.{8})', '\\1-')
              from 1)::uuid, ${columns?.names}
     from interactions`,
  );
  const rows = Number((await cluster.query<{ count: string }>(`select count(*) from ${day.name}`))[0]?.count);
  const bytes = () =>
    cluster.query<{ size: string }>('select pg_indexes_size($1::regclass) as size', [day.name]);
  const before = {
    postgres: cpuSecondsOfEach({ cluster, service }).postgres,
    wal: await walPosition(cluster),
    size: Number((await bytes())[0]?.size),
  };
  for (let isBuilt = true; isBuilt; ) {
    const [built] = await cluster.query<{ built: boolean }>('select index_interaction_partition() as built');
    isBuilt = built?.built === true;
  }
  return {
    postgres: (cpuSecondsOfEach({ cluster, service }).postgres - before.postgres) / rows,
    wal: ((await walPosition(cluster)) - before.wal) / rows,
    bytes: (Number((await bytes())[0]?.size) - before.size) / rows,
  };
}
