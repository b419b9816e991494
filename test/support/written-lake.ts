import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { LakeKeeper } from '../../src/lake/keep-lake.ts';
import { countWaitingRows } from '../../src/lake/lake-progress.ts';
import { LakeSlots } from '../../src/lake/lake-slots.ts';
import { LakeWriter } from '../../src/lake/lake-writer.ts';
import { lakeLimits } from '../../src/lake/limits.ts';
import { emptyPlace, LakePlace } from '../../src/lake/store/lake-place.ts';
import { type LakeStore, openStore } from '../../src/lake/store/lake-store.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { ParquetWriter } from '../../src/lake/table/parquet-writer.ts';
import type { DataFile } from '../../src/lake/table/table-state.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import type { ResourceType } from '../../src/registry/resources.ts';
import type { UploadType } from '../../src/registry/upload-types.ts';
import { msOfUuidV7 } from '../../src/registry/uuid-v7.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { erasureKey } from './app.ts';
import { addInteractions } from './old-interactions.ts';
import { currentRecords } from './version-rows.ts';

const schema = lakeSchema('interactions');
const texts = schema.columns.filter(({ type }) => type === 'string').map(({ name }) => name);

/** A lake in a temporary folder, with access to its contents. */
export class WrittenLake {
  readonly folder = mkdtempSync(join(tmpdir(), 'intake-test-lake-'));
  readonly url = pathToFileURL(join(this.folder, 'lake')).href;
  readonly parquet = new ParquetWriter({
    folder: mkdtempSync(join(this.folder, 'local-')),
    memoryMb: 256,
    threads: 1,
  });
  /** The calls to the store, each as a method name and a path. */
  readonly calls: string[] = [];
  /** The tables because of which everything was copied again. */
  readonly lost: (string | undefined)[] = [];
  /** Awaited before and after each call to the store. May throw, to simulate an unavailable store or a crash. */
  fault: (call: string, moment: 'before' | 'after') => unknown = () => {};

  readonly store: LakeStore = new Proxy(openStore(this.url), {
    get: (store, name: keyof LakeStore) => {
      const method = store[name] as (...given: unknown[]) => unknown;
      if (name === 'list') return method.bind(store);
      return async (path: string, ...rest: unknown[]) => {
        const call = `${name} ${path}`;
        this.calls.push(call);
        await this.fault(call, 'before');
        const result = await method.call(store, path, ...rest);
        await this.fault(call, 'after');
        return result;
      };
    },
  });

  /** Creates a writer that has no state yet, like one in a newly started process. */
  writer(pool: Pool, rowsPerStep = 500_000, isHeld = () => true): LakeWriter {
    const { store, parquet } = this;
    const suppressions = new Suppressions([erasureKey]);
    const startedOver = (_: string, table?: string) => this.lost.push(table);
    return new LakeWriter({ pool, store, parquet, suppressions, isHeld, rowsPerStep, startedOver });
  }

  async files(organisationId: string, type?: UploadType): Promise<readonly DataFile[]> {
    return (await this.table(organisationId, type))?.files ?? [];
  }

  /** Returns -1 if there is no table. */
  async version(organisationId: string, type?: UploadType): Promise<number> {
    return (await this.table(organisationId, type))?.version ?? -1;
  }

  tableFolder(organisationId: string, type: UploadType): string {
    return join(this.folder, 'lake', organisationId, lakeSchema(type).name);
  }

  /** Returns the current records of a type, as strings. */
  async current(organisationId: string, type: ResourceType): Promise<string[]> {
    const version = await this.version(organisationId, type);
    if (version < 0) return [];
    return currentRecords(this.tableFolder(organisationId, type), type, version);
  }

  /** Returns every row as a string, sorted. */
  async rows(organisationId: string): Promise<string[]> {
    const table = await this.table(organisationId);
    const rows: string[] = [];
    if (!table) return rows;
    for (const file of table.files) {
      const local = await table.get(file);
      const times = ['event_time', 'created'].map((name) => `epoch_us(${name})::varchar as ${name}`);
      const found = await this.parquet.run([
        `select ${[...texts, ...times].join(', ')} from read_parquet('${local}')`,
      ]);
      await rm(local);
      for (const row of found) {
        if (new Date(Number(row.created) / 1_000).toISOString().slice(0, 10) !== file.partition)
          throw new Error('a row is in a file of another day');
        rows.push(textOf(row));
      }
    }
    return rows.sort();
  }

  async close(): Promise<void> {
    await this.parquet.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Reads a table as another process does. Creating it here would look like a lake that the database has lost. */
  async table(organisationId: string, type: UploadType = 'interactions'): Promise<DeltaTable | undefined> {
    const of = lakeSchema(type);
    return DeltaTable.read(openStore(this.url), `${organisationId}/${of.name}`, of, this.parquet);
  }
}

/** Does everything that a process finds to do at one time. */
export async function runRound(keeper: LakeKeeper): Promise<void> {
  await keeper.look();
  await keeper.settle();
}

/** Returns every interaction stored in PostgreSQL, in the format of `WrittenLake.rows`. */
export async function storedRows(pool: Pick<Pool, 'query'>, organisationId: string): Promise<string[]> {
  const { rows } = await pool.query<Record<string, string | null>>(
    `select ${texts.map((name) => `${name}::text`).join(', ')},
       (extract(epoch from event_time) * 1000000)::bigint::text as event_time
     from interactions where organisation_id = $1`,
    [organisationId],
  );
  return rows
    .map((row) => textOf({ ...row, created: String(msOfUuidV7(row.interaction_id ?? '') * 1_000) }))
    .sort();
}

function textOf(row: Readonly<Record<string, string | null>>): string {
  return JSON.stringify([...texts, 'event_time', 'created'].map((name) => row[name] ?? null));
}

/** Returns request bodies of interactions. Some have all fields and unusual characters, and others only required fields. */
export function newInteractions(count: number, itemId: string, more: object = {}): object[] {
  return Array.from({ length: count }, (_, at) => ({
    interaction_type: ['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE'][at % 4],
    item_type: 'SHOP',
    item_id: itemId,
    event_timestamp:
      at % 2 === 0 ? 1_700_000_000 + at : `2026-03-14T09:26:53.${String(at % 1_000).padStart(3, '0')}Z`,
    ...(at % 3 === 0 && {
      user_id: `visitor "${at}"\\ \u{1f355}`,
      city: 'Málaga\n',
      country: 'ES',
      platform: 'WEB',
      source: 'SERVICE',
      recommendation_id: randomUUID(),
    }),
    ...more,
  }));
}

/**
 * Copies an organisation's data to a lake, follows the change log, erases people and removes the lake, so that all of
 * the lake's SQL statements run.
 */
export async function writeLakeOnce(
  pool: Pool,
  owner: Parameters<typeof addInteractions>[0],
  organisationId: string,
): Promise<void> {
  await owner.query('update organisations set lake = true where organisation_id = $1', [organisationId]);
  const lake = new WrittenLake();
  const slots = new LakeSlots(pool);
  const failures: unknown[] = [];
  const log = {
    looked: () => {},
    stepped: () => {},
    recovered: () => {},
    failed: (error: unknown) => failures.push(error),
  };
  const newKeeper = () => new LakeKeeper({ pool, slots, writer: lake.writer(pool), delayMs: 0, log });
  // On a slow machine, all rounds together take longer than slots are held.
  const runHeld = async (keeper: LakeKeeper) => {
    await slots.renew();
    await runRound(keeper);
  };
  const keeper = newKeeper();
  await runHeld(keeper);
  await addInteractions(owner, organisationId, { startMs: Date.now() }, 2, () => 0);
  await numberForAll(pool);
  await countWaitingRows(pool, organisationId, 0, lakeLimits.changesEstimated);
  await runHeld(keeper);
  expect(failures).toEqual([]);
  const stored = await storedRows(owner as Pick<Pool, 'query'>, organisationId);
  expect(await lake.rows(organisationId)).toEqual(stored);
  await owner.query(`update erasures set lake_state = 'pending' where organisation_id = $1`, [
    organisationId,
  ]);
  await runHeld(newKeeper());
  const { rows: pending } = await owner.query(`select from erasures where lake_state <> 'done'`);
  expect(pending).toEqual([]);
  // Make the table look as if it had lost commits, so that the files are removed and written again.
  await owner.query(`update lake_progress set positions = '{"interactions": 1000000}'`);
  await addInteractions(owner, organisationId, { startMs: Date.now() }, 2, () => 0);
  await numberForAll(pool);
  for (let round = 0; round < 3; round++) {
    await runHeld(newKeeper());
    await owner.query(
      `update lake_progress set removing_since = '2026-01-01' where removing_since is not null`,
    );
  }
  expect(await lake.rows(organisationId)).toHaveLength(stored.length + 2);
  await owner.query('update organisations set lake = false where organisation_id = $1', [organisationId]);
  for (let round = 0; round < 2; round++) {
    await runHeld(newKeeper());
    await owner.query(`update lake_progress set removing_since = '2026-01-01'`);
  }
  expect(await lake.files(organisationId)).toEqual([]);
  expect(failures).toEqual([]);
  const elsewhere = pathToFileURL(join(lake.folder, 'elsewhere')).href;
  await new LakePlace(pool, lake.store, lake.url).claim();
  await new LakePlace(pool, openStore(elsewhere), elsewhere).takeOver(emptyPlace);
  await slots.release();
  await lake.close();
}
