import { randomUUIDv7 } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop, newTag } from '../../test/support/new-records.ts';
import { addInteractions } from '../../test/support/old-interactions.ts';
import { type ChangeEvent, Intake } from '../src/index.ts';
import { limits } from '../src/limits.ts';
import { type Place, startIntake } from './support/run-intake.ts';

/** This file tests the change feed and the report, with the library and with the command. */

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});

/** Starts a tunnel between the client and the service. The tunnel can cut or stall every connection. */
async function startTunnel(url: string) {
  const sockets = new Set<Socket>();
  const { hostname, port } = new URL(url);
  const tunnel = createServer((client) => {
    const onward = connect(Number(port), hostname);
    client.pipe(onward).pipe(client);
    for (const socket of [client, onward]) {
      sockets.add(socket.on('error', () => {}));
      socket.on('close', () => {
        client.destroy();
        onward.destroy();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(tunnel, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  const silence = () => {
    for (const socket of sockets) socket.unpipe();
    sockets.clear();
  };
  onTestFinished(() => {
    cut();
    tunnel.close();
  });
  return { url: `http://127.0.0.1:${(tunnel.address() as AddressInfo).port}`, cut, silence };
}

it('changes arrive in order, each with a cursor, and continue where a connection broke or fell silent', async () => {
  const key = await server.createKey('feed');
  const intake = new Intake({ url: server.url, key });
  const tunnel = await startTunnel(server.url);
  const { changesSilenceMs } = limits;
  limits.changesSilenceMs = 2_000;
  onTestFinished(() => {
    limits.changesSilenceMs = changesSilenceMs;
  });
  const seen: ChangeEvent[] = [];
  const left = new AbortController();
  const following = (async () => {
    const feed = new Intake({ url: tunnel.url, key }).changes({ types: ['tags'], signal: left.signal });
    for await (const event of feed) seen.push(event);
  })();
  const ended = expect(following).rejects.toThrow('left');
  const tags = many(40, () => newTag());
  const ids = () => seen.flatMap((event) => (event.type ? [event.id] : []));
  for (let round = 0; round < 4; round++) {
    await intake.upload('shops', [newShop()]).finish();
    for (const tag of tags.slice(round * 10, round * 10 + 10)) await intake.upload('tags', [tag]).finish();
    await expect.poll(() => new Set(ids()).size).toBe(10 * round + 10);
    if (round === 2) tunnel.silence();
    else tunnel.cut();
  }
  left.abort(new Error('left'));
  await ended;
  // If a connection breaks after a line has arrived, the line may be sent again.
  expect([...new Set(ids())]).toEqual(tags.map(({ tag_id }) => tag_id));
  expect(seen.every(({ cursor }) => /^\d+-/.test(cursor))).toBe(true);
  const half = seen.findIndex((event) => event.type && event.id === tags[19]?.tag_id);
  for await (const event of intake.changes({ types: ['tags'], after: seen[half]?.cursor ?? '' })) {
    expect(event).toMatchObject({ type: 'tags', id: tags[20]?.tag_id, record: { name: 'vegan' } });
    break;
  }
});

it('a cursor that the service did not issue is an error, without a retry', async () => {
  const intake = new Intake({ url: server.url, key: await server.createKey('cursors') });
  const read = async () => {
    for await (const _ of intake.changes({ after: 'made up' })) return;
  };
  await expect(read()).rejects.toMatchObject({ code: 'invalid_request', status: 400 });
});

it('the commands follow changes and show the report', async () => {
  const key = await server.createKey('commands');
  const intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-following-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const place: Place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  const tag = newTag();
  await intake.upload('tags', [tag]).finish();
  const following = startIntake(place, 'changes', '--types', 'tags');
  await once(following.stdout as NodeJS.ReadableStream, 'data');
  following.kill('SIGINT');
  const { exitCode, stdout, stderr } = await following.ended;
  const change = JSON.parse(stdout);
  expect([exitCode, change.id]).toEqual([0, tag.tag_id]);
  expect(stderr).toBe(`Continue with --after ${change.cursor}\n`);
  const wrong = await startIntake(place, 'changes', '--types', 'labels').ended;
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('There is no type labels')]);

  const off = await startIntake(place, 'report').ended;
  expect([off.exitCode, off.stdout]).toEqual([2, '']);
  await server.run('organisations', 'set-report', server.slugOf('commands'), 'on');
  const args = ['report', '--from', '2026-03-01', '--to', '2026-03-03'];
  const isOn = async () => {
    for await (const _ of intake.reports.recommendations()) return true;
    return false;
  };
  await expect.poll(() => isOn().catch(() => false)).toBe(true);
  const table = await startIntake(place, ...args).ended;
  expect(table.exitCode, table.stderr).toBe(0);
  expect(table.stdout).toMatch(/^Group .*Savings\n.*total +0/s);
  const json = await startIntake(place, ...args, '--group-by', 'item', '--json').ended;
  expect(JSON.parse(json.stdout)).toMatchObject({ from: '2026-03-01', group_by: 'item', groups: [] });
});

it('interactions that have expired are reported by the library and by the command', async () => {
  const key = await server.createKey('expiring');
  const slug = server.slugOf('expiring');
  await server.run('organisations', 'set-retention', slug, '--interactions', '1d');
  const dayMs = 86_400_000;
  const startMs = Math.floor(Date.now() / dayMs - 2) * dayMs;
  const database = new pg.Client({ connectionString: server.databaseUrl });
  await database.connect();
  onTestFinished(() => database.end());
  const { rows } = await database.query('select organisation_id from organisations where slug = $1', [slug]);
  const { organisation_id } = rows[0];
  const [id] = await addInteractions(database, organisation_id, { startMs }, 1);
  await database.query('select begin_expiry(null)');
  await database.query('select expire_interactions($1, $2, 10)', [organisation_id, randomUUIDv7()]);
  const expired_before = new Date(startMs + dayMs).toISOString();
  const seen: ChangeEvent[] = [];
  for await (const event of new Intake({ url: server.url, key }).changes({ types: ['interactions'] })) {
    seen.push(event);
    if (seen.length === 2) break;
  }
  expect(seen).toEqual([
    { cursor: expect.any(String), type: 'interactions', id, deleted: true, erased: false, record: null },
    { cursor: expect.any(String), type: 'interactions', expired_before },
  ]);
  const cwd = mkdtempSync(join(tmpdir(), 'intake-expiring-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const place: Place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  const following = startIntake(place, 'changes', '--after', seen[0]?.cursor ?? '');
  await once(following.stdout as NodeJS.ReadableStream, 'data');
  following.kill('SIGINT');
  expect(JSON.parse((await following.ended).stdout)).toEqual(seen[1]);
});

it('uploads interactions of the past, split into requests, each stored once', async () => {
  const intake = new Intake({ url: server.url, key: await server.createKey('history') });
  const tag = newTag();
  await intake.upload('tags', [tag]).finish();
  const past = many(6_000, (at) => ({
    interaction_type: 'SHARE' as const,
    item_type: 'TAG' as const,
    item_id: at === 5_999 ? newTag().tag_id : tag.tag_id,
    event_timestamp: at + 1,
  }));
  for (const again of [1, 2]) {
    const { counts, failed } = await intake.interactions.upload(past, { name: 'history' }).finish();
    expect(counts, `${again}`).toMatchObject({ received: 6_000, created: 5_999, failed: 1 });
    expect(failed).toMatchObject([{ index: 5_999, problems: [{ code: 'reference_not_found' }] }]);
  }
  const types = await intake.data.overview();
  expect(types.find(({ type }) => type === 'interactions')?.records).toBe(5_999);
});
