// @module-tag full
// @module-tag postgres-15

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startService } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config.ts';
import { limits } from '../../src/limits.ts';
import { distributionSteps } from '../../src/operator/distribute.ts';
import { schemaState } from '../../src/postgres/schema/schema-state.ts';
import { type Api, apiOf } from '../support/api.ts';
import { unlimited } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { badTag, many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

/**
 * Tests migrating from a single PostgreSQL server to a Citus cluster. CITUS_URL connects to the coordinator as a
 * superuser. Without it, only the refusals are tested.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const { CITUS_URL } = process.env;

interface Ran {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command on a database. The command may take minutes. */
function run(databaseUrl: string, args: readonly string[], cwd = root): Promise<Ran> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl };
    const child = execFile(process.execPath, ['src/main.ts', ...args], { cwd, env }, (_, stdout, stderr) =>
      resolve({ exitCode: child.exitCode, stdout, stderr }),
    );
  });
}

const refused = (says: RegExp) => ({ exitCode: 1, stdout: '', stderr: expect.stringMatching(says) });

describe.skipIf(CITUS_URL)('on plain PostgreSQL', () => {
  let databaseUrl: string;
  beforeAll(async () => {
    databaseUrl = await createTestDatabase();
  });

  it.each([
    ['distribute'],
    ['distribute', '--dry-run'],
    ['cluster'],
    ['cluster', 'move', 'acme', 'there:5432'],
  ])('%s is refused with a sentence', async (...args) => {
    expect(await run(databaseUrl, args)).toEqual(
      refused(/^intake-server: the database has no Citus; .*; nothing was done\n$/),
    );
  });

  it.each(['0', '1.5', 'many', String(limits.clusterShardsMax + 1)])(
    '--shards %s is refused',
    async (shards) => {
      expect(await run(databaseUrl, ['distribute', '--shards', shards])).toEqual(
        refused(/--shards must be a whole number from 1 to/),
      );
    },
  );

  it.each([['distribute'], ['cluster', 'move', 'acme', 'there:5432']])(
    '%s whose connection is lost ends with a sentence',
    async (...args) => {
      const proxy = await startTcpProxy(databaseUrl);
      proxy.watch((bytes, link) => {
        const isAsked = bytes.includes('pg_extension');
        if (isAsked) link.cut();
        return !isAsked;
      });
      expect(await run(proxy.databaseUrl, args)).toEqual(
        refused(
          /^intake-server: the connection to PostgreSQL at \S+ was lost \(.*\); .* run the command again.*\n$/,
        ),
      );
      await proxy.close();
    },
  );

  it('the steps leave a schema with which this version starts', async () => {
    const distributedUrl = await createTestDatabase();
    // These are stubs for the parts of Citus that the steps need.
    await queryDatabase(
      distributedUrl,
      `create table pg_dist_partition (logicalrelid oid);
       create table pg_dist_object (classid oid, objid oid, force_delegation boolean);
       create function create_distributed_function(text, text, colocate_with text, force_delegation boolean) returns void
         language sql as 'insert into pg_dist_object values (''pg_proc''::regclass, $1::regprocedure, $4)';
       create function create_distributed_table(text, text, shard_count integer default 0, colocate_with text default '')
         returns void language sql as 'insert into pg_dist_partition values ($1::regclass)';
       create function truncate_local_data_after_distributing_table(text) returns void language sql as ''`,
    );
    const client = new pg.Client({ connectionString: distributedUrl });
    await client.connect();
    try {
      const steps = await distributionSteps(client);
      expect(steps.join('\n')).toContain("create_distributed_table('tags', 'organisation_id'");
      expect(steps.join('\n')).toContain('create_distributed_function(');
      for (const step of steps) await client.query(step);
      expect(await distributionSteps(client)).toEqual([]);
      expect(await schemaState(client)).toBe('current');
    } finally {
      await client.end();
    }
  });
});

describe.runIf(CITUS_URL)('on a cluster', () => {
  const name = `distribute_${randomBytes(4).toString('hex')}`;
  const coordinatorUrl = at(CITUS_URL ?? 'postgres://nowhere', name);
  const stranger = `stranger_${name}`;
  let workers: string[];
  let api: Api;

  beforeAll(async () => {
    const found = await queryDatabase<{ node: string }>(
      CITUS_URL as string,
      `select nodename || ':' || nodeport as node from pg_dist_node where groupid > 0 and isactive order by nodeid`,
    );
    workers = found.map(({ node }) => node);
    for (const url of nodeUrls()) await queryDatabase(at(url, 'postgres'), `create database ${name}`);
  });
  afterAll(async () => {
    for (const url of nodeUrls())
      await queryDatabase(at(url, 'postgres'), `drop database if exists ${name} with (force)`);
    await queryDatabase(CITUS_URL as string, `drop role if exists ${stranger}`);
  });

  const nodeUrls = () => [
    coordinatorUrl,
    ...workers.map((host) => Object.assign(new URL(coordinatorUrl), { host }).href),
  ];

  /** Runs the service while `work` runs. */
  async function serving(work: () => Promise<void>): Promise<void> {
    const config = readConfig({ ...unlimited, DATABASE_URL: coordinatorUrl, PORT: '0', LOG_LEVEL: 'silent' });
    const service = await startService(config);
    try {
      const key = await run(coordinatorUrl, ['keys', 'issue', '--organisation', 'acme', '--json']);
      api = apiOf(service.address, JSON.parse(key.stdout).key);
      await work();
    } finally {
      await service.stop();
    }
  }

  const distribute = (...args: string[]) => run(coordinatorUrl, ['distribute', ...args]);
  const tags = many(3, () => newTag({ updated: '2026-01-01T00:00:00Z' }));

  // This test follows the steps in order, as an operator would.
  it('is refused, step by step, until the cluster is ready', async () => {
    expect(await distribute()).toEqual(refused(/has no Citus/));
    for (const url of nodeUrls()) await queryDatabase(url, 'create extension citus');
    expect(await distribute()).toEqual(refused(/has no workers; add each/));
    const [host, port] = hostAndPort(coordinatorUrl);
    await queryDatabase(coordinatorUrl, 'select citus_set_coordinator_host($1, $2)', [host, port]);
    for (const url of nodeUrls().slice(1))
      await queryDatabase(coordinatorUrl, 'select citus_add_node($1, $2)', hostAndPort(url));
    expect(await distribute()).toEqual(refused(/run intake-server migrate first/));
    expect(await run(coordinatorUrl, ['migrate'])).toMatchObject({ exitCode: 0 });
    expect(await run(nodeUrls()[1] as string, ['distribute'])).toEqual(refused(/points at a worker/));
    expect(await run(coordinatorUrl, ['cluster'])).toEqual(
      refused(/not distributed; run intake-server distribute/),
    );
    expect(await run(await strangerUrl(), ['distribute'])).toEqual(
      refused(/does not own the tables; run it as/),
    );
  });

  it('spreads existing rows, and is refused while processes serve', async () => {
    expect(await run(coordinatorUrl, ['organisations', 'create', 'acme'])).toMatchObject({ exitCode: 0 });
    await serving(async () => {
      expect((await api.upload('tags', [...tags, badTag()])).status).toBe(207);
      expect(await distribute()).toEqual(refused(/processes of Intake are connected/));
    });
    const planned = await distribute('--dry-run', '--shards', '4');
    expect(planned.stdout).toContain(
      "create_distributed_table('tenants', 'organisation_id', shard_count => 4);",
    );
    expect(planned.stdout).toContain("truncate_local_data_after_distributing_table('receipts');");
    const isDistributed = 'select from pg_dist_partition';
    expect(await queryDatabase(coordinatorUrl, isDistributed)).toEqual([]);
    const done = await distribute('--shards', '4');
    expect(done).toMatchObject({ exitCode: 0, stderr: '' });
    expect(done.stdout.startsWith(planned.stdout)).toBe(true);
    expect(await queryDatabase(coordinatorUrl, `select pg_relation_size('tags')::integer as bytes`)).toEqual([
      { bytes: 0 },
    ]);
  });

  it('can be run again, and keeps the number of shards', async () => {
    expect(await distribute()).toEqual({
      exitCode: 0,
      stdout: 'The tables were already distributed.\n',
      stderr: '',
    });
    expect(await distribute('--shards', '8')).toEqual(refused(/already distributed over 4 shards/));
  });

  it('stored data still exists, and the service continues', async () => {
    await run(coordinatorUrl, ['organisations', 'create', 'beta']);
    await serving(async () => {
      expect((await api.batch('tags', tags)).counts).toMatchObject({ unchanged: 3 });
      expect((await api.get('/v1/rejections')).body.rejections).toHaveLength(1);
      expect(
        (
          await api.batch(
            'tags',
            many(3, () => newTag()),
          )
        ).counts,
      ).toMatchObject({ created: 3 });
      const item = { item_type: 'TAG', item_id: tags[0]?.tag_id, event_timestamp: 1_767_225_600 };
      expect((await api.post('/user-interactions', { interaction_type: 'SHARE', ...item })).status).toBe(201);
    });
  });

  it('a table of a later migration is distributed by migrate', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'intake-distribute-'));
    for (const part of ['src', 'migrations', 'package.json'])
      cpSync(join(root, part), join(folder, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(
      join(folder, 'migrations', '9999_colours.sql'),
      'create table colours (organisation_id uuid, colour text, primary key (organisation_id, colour));',
    );
    const migrated = await run(coordinatorUrl, ['migrate'], folder);
    rmSync(folder, { recursive: true });
    expect(migrated).toMatchObject({ exitCode: 0, stderr: '' });
    expect(migrated.stdout).toContain(
      "create_distributed_table('colours', 'organisation_id', colocate_with => 'tenants')",
    );
    await queryDatabase(
      coordinatorUrl,
      `begin; delete from schema_migrations where name = '9999_colours'; drop table colours; commit`,
    );
  });

  it('cluster shows the node of an organisation, and moves it', async () => {
    const placeOf = async () => {
      const { nodes, largest } = JSON.parse((await run(coordinatorUrl, ['cluster', '--json'])).stdout);
      expect(nodes.map(({ node }: { node: string }) => node)).toEqual([
        new URL(coordinatorUrl).host,
        ...workers,
      ]);
      // Six tags and one interaction make seven records.
      expect(largest).toMatchObject([{ organisation: 'acme', records: 7 }]);
      return largest[0].node as string;
    };
    const move = (...to: string[]) => run(coordinatorUrl, ['cluster', 'move', ...to]);
    const from = await placeOf();
    const target = workers.find((node) => node !== from) as string;
    expect(await move('acme', 'nowhere:1')).toEqual(refused(/is not a node that takes shards; these do: /));
    expect(await move('nobody', target)).toEqual(refused(/there is no organisation "nobody"/));
    const moved = await move('acme', target);
    expect(moved).toMatchObject({ exitCode: 0, stderr: '' });
    expect(moved.stdout).toMatch(
      new RegExp(`from ${from} to ${target}\\.\n[^]*^acme is on ${target}\\.\n$`, 'm'),
    );
    expect(await placeOf()).toBe(target);
    expect((await move('acme', target)).stdout).toBe(`acme is already on ${target}.\n`);
    await serving(async () => {
      expect((await api.batch('tags', tags)).counts).toMatchObject({ unchanged: 3 });
    });
  });

  /** Returns the URL for a login that is not the owner. */
  async function strangerUrl(): Promise<string> {
    await queryDatabase(coordinatorUrl, `create role ${stranger} login password 'x' in role intake_serve`);
    return Object.assign(new URL(coordinatorUrl), { username: stranger, password: 'x' }).href;
  }
});

function at(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href;
}

function hostAndPort(url: string): [string, string | null] {
  const { host, port } = new pg.Client({ connectionString: url });
  return [host, String(port)];
}
