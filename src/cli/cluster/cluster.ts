import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { limits } from '../../limits.ts';
import { moveProgress, planMove, readCluster, refuseUndistributed } from '../../operator/cluster.ts';
import { commandError } from '../arguments/help.ts';
import { onCoordinator } from '../database/coordinator.ts';

export async function run([action, ...args]: string[]): Promise<void> {
  if (action === undefined || action.startsWith('--'))
    return show(action === undefined ? [] : [action, ...args]);
  if (action === 'move') return move(args);
  throw commandError(
    'cluster expects no arguments, --json or move; run intake-server cluster --help for examples',
  );
}

async function show(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean', default: false } } });
  const cluster = await onCoordinator('cluster', async (coordinator) => {
    await refuseUndistributed(coordinator);
    return readCluster(coordinator);
  });
  if (values.json) return console.log(JSON.stringify(cluster));
  for (const { node, is_coordinator, is_active, shards, bytes } of cluster.nodes) {
    const role = is_coordinator ? 'coordinator' : 'worker';
    console.log([node, is_active ? role : `${role}, inactive`, `${shards} shards`, sizeOf(bytes)].join('\t'));
  }
  for (const { organisation, records, shard, node, bytes, organisations } of cluster.largest)
    console.log(
      [
        organisation,
        `${records} records`,
        node,
        `shard ${shard}: ${organisations} organisations, ${sizeOf(bytes)}`,
      ].join('\t'),
    );
}

async function move(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const [slug, node, ...rest] = positionals;
  if (slug === undefined || node === undefined || rest.length > 0)
    throw commandError('specify an organisation and a node: cluster move acme worker-2.internal:5432');
  await onCoordinator('cluster move', async (coordinator) => {
    await refuseUndistributed(coordinator);
    const planned = await planMove(coordinator, slug, node);
    if (!planned) return console.log(`${slug} is already on ${node}.`);
    const { shard, from, organisations, statement } = planned;
    console.log(`Moving shard ${shard}, with ${organisations} organisations, from ${from} to ${node}.`);
    await showingProgress(coordinator.query(statement));
    console.log(`${slug} is on ${node}.`);
  });
}

/** Reads the progress over a second connection. If that connection fails, waits without printing. */
async function showingProgress(moving: Promise<unknown>): Promise<void> {
  let isMoving = true;
  const ended = moving.finally(() => {
    isMoving = false;
  });
  ended.catch(() => {});
  await onCoordinator('cluster', async (coordinator) => {
    for (let last = ''; isMoving; ) {
      const progress = await moveProgress(coordinator);
      const line = progress && `${progress.status}: ${sizeOf(progress.arrived)} of ${sizeOf(progress.bytes)}`;
      if (line !== undefined && line !== last) console.log(line);
      last = line ?? last;
      await Promise.race([ended.catch(() => {}), sleep(limits.clusterProgressMs)]);
    }
  }).catch(() => {});
  await ended;
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
