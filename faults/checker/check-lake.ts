import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { needTool } from '../../scripts/tools.ts';
import type { Values } from '../../test/fault/erasure-mixture/oracle.ts';
import { copyOf, runIntake } from '../clients/commands.ts';
import type { Organisation } from '../world/organisation.ts';
import type { World } from '../world/world.ts';
import type { Violate } from './check-records.ts';
import { readTable } from './read-table.ts';
import { comparedTables } from './stored-text.ts';

/** A lake follows after a second, but it may have to be copied again, or its process may have to start. */
const followsWithinMs = 300_000;

const reader = fileURLToPath(new URL('read-lake.py', import.meta.url));

const names = { lake: 'lake', pulled: 'pulled copy' };

interface Difference {
  /** No wait corrects a record that is there twice. */
  readonly isTwice?: boolean;
  readonly [name: string]: unknown;
}

const hasTwice = (wrong: readonly Difference[]): boolean => wrong.some(({ isTwice }) => isTwice);

/** Compares an organisation's lake, and a copy that is pulled now, with the database. */
export async function checkLakes(world: World, organisation: Organisation, violate: Violate): Promise<void> {
  const copy = copyOf(world, organisation);
  const places = world.s3 ? (['pulled'] as const) : (['lake', 'pulled'] as const);
  for (const place of places) {
    let wrong: Difference[] = [];
    for (const deadlineMs = world.deadline(followsWithinMs); ; await sleep(2_000)) {
      const failure = place === 'pulled' ? await pull(world, organisation) : null;
      const folder = place === 'pulled' ? copy : join(world.folder, 'lake', organisation.id);
      wrong = failure === null ? await differences(world, organisation, folder) : [{ failure }];
      if (wrong.length === 0 || hasTwice(wrong) || performance.now() > deadlineMs) break;
    }
    if (wrong.length > 0)
      violate(
        `I12: the ${names[place]} ${hasTwice(wrong) ? 'has a record twice' : 'differs from the database'}`,
        {
          slug: organisation.slug,
          differences: wrong.length,
          first: wrong.slice(0, 3),
        },
      );
  }
  rmSync(copy, { recursive: true, force: true });
}

/** Pulls with the command, as an organisation does. Returns what went wrong, or null. */
async function pull(world: World, organisation: Organisation): Promise<string | null> {
  const { code, said } = await runIntake(world, organisation, ['pull', copyOf(world, organisation)]);
  return code === 0 ? null : `intake pull ended with ${code}: ${said}`;
}

async function differences(world: World, { id }: Organisation, folder: string): Promise<Difference[]> {
  const wrong: Difference[] = [];
  const inLake = await readLake(folder).catch((error) => String(error));
  if (typeof inLake === 'string') return [{ failure: inLake }];
  await world.database.connected(async (client) => {
    await client.query('begin isolation level repeatable read read only');
    for (const table of comparedTables) {
      const found = inLake.get(table.name) ?? new Map<string, Values>();
      const isInteraction = table.name === 'interactions';
      for (const { key, values } of await readTable(client, id, table)) {
        if (values.is_deleted === 'true') continue;
        const copied = found.get(key);
        found.delete(key);
        const fields = Object.keys(values).filter((name) => !isInteraction || name !== 'event_timestamp');
        const differing = fields.filter((name) => (copied?.[name] ?? null) !== values[name]);
        if (!copied || differing.length > 0)
          wrong.push({ table: table.name, key, differing, copied, values });
      }
      for (const key of found.keys())
        wrong.push({ table: table.name, key, isExtra: true, isTwice: key.endsWith(' twice') });
    }
  });
  return wrong;
}

async function readLake(folder: string): Promise<Map<string, Map<string, Values>>> {
  const identifiers = Object.fromEntries(comparedTables.map(({ name, id }) => [name, id]));
  const python = join(needTool('readers of the lake'), 'python');
  const child = spawn(python, [reader, folder, JSON.stringify(identifiers)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const tables = new Map<string, Map<string, Values>>();
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [name, key, values] = JSON.parse(line) as [string, string, Values | 'twice'];
    const table = tables.get(name) ?? new Map<string, Values>();
    tables.set(name, table);
    if (values === 'twice') table.set(`${key} twice`, {});
    else table.set(key, values);
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the lake cannot be read: ${errors.slice(-3).join(' ')}`);
  return tables;
}
