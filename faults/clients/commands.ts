import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { many } from '../../test/support/new-records.ts';
import type { Organisation } from '../world/organisation.ts';
import type { World } from '../world/world.ts';
import type { ClientKind, Stage } from './client.ts';
import { makeInteraction } from './interactions.ts';

const command = fileURLToPath(new URL('../../client/dist/command/main.js', import.meta.url));

/** Runs the `intake` command as an organisation does. It is killed after this time, if there is one. */
export async function runIntake(
  world: World,
  { key }: Organisation,
  args: readonly string[],
  killedAfterMs?: number,
): Promise<{ readonly code: number | null; readonly said: string }> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: world.folder,
    INTAKE_URL: world.url,
    INTAKE_KEY: key,
    NODE_EXTRA_CA_CERTS: world.caFile,
  };
  const child = spawn(process.execPath, [command, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => said.push(bytes));
  const killing = killedAfterMs && setTimeout(() => child.kill('SIGKILL'), killedAfterMs);
  const [code] = await once(child, 'close');
  clearTimeout(killing);
  return { code, said: Buffer.concat(said).toString().slice(-2_000) };
}

/** Uploads files of interactions with the command, which is killed now and then and then resumed. */
export const uploadCommands: ClientKind = {
  name: 'uploads with the command',
  promises: 'I1 I4 I11',
  // Starting the command takes a large part of two cores.
  perOrganisation: 0.1,
  start: (stage) => ({ run: () => uploadFiles(stage) }),
};

async function uploadFiles(stage: Stage): Promise<void> {
  const { world, organisation, random, count, violate, over } = stage;
  while (!stage.isOver) {
    await sleep(random.below(3_000), undefined, { signal: over }).catch(() => {});
    const folder = join(world.folder, `files-${random.hex(8)}`);
    mkdirSync(folder);
    const path = join(folder, 'interactions.ndjson');
    const made = many(200 + random.below(4_000), () => makeInteraction(organisation, random));
    const sound = made.filter(({ sent }) => !sent.isBroken);
    const { rewinds } = organisation;
    const writes = organisation.ledger.begin(sound.map(({ sent }) => sent));
    writeFileSync(path, sound.map(({ record }) => `${JSON.stringify(record)}\n`).join(''));
    let ran = { code: null as number | null, said: '' };
    for (let attempt = 0; attempt < 8 && ran.code !== 0 && ran.code !== 1; attempt++) {
      const killedAfterMs = random.chance(0.5) && attempt < 4 ? 300 + random.below(3_000) : undefined;
      // Killed before it had begun, or after it had ended. Nobody knows which, so nothing is expected.
      if (attempt > 0 && !existsSync(`${path}.journal`)) ran = { code: 1, said: '' };
      if (ran.code === 1) break;
      const resume = attempt > 0 ? ['--resume'] : [];
      ran = await runIntake(world, organisation, ['upload', path, ...resume], killedAfterMs);
      count('runs of the command');
    }
    // Only some people are erased, whose interactions fail then.
    // What the command remembers of requests that a restore has lost is wrong.
    if (ran.code === 0 && rewinds === organisation.rewinds)
      for (const write of writes) organisation.ledger.settle(write, 'stored');
    else if (ran.code !== 1 && rewinds === organisation.rewinds)
      violate('I11: an interrupted upload cannot be resumed', ran);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Pulls a copy of the lake again and again, and is killed now and then. The copy is compared at the end. */
export const pullCommands: ClientKind = {
  name: 'pulls of the lake',
  promises: 'I12',
  perOrganisation: 0.2,
  start: (stage) => ({
    async run() {
      const { world, organisation, random, over, count } = stage;
      while (!stage.isOver) {
        await sleep(5_000 + random.below(15_000), undefined, { signal: over }).catch(() => {});
        if (stage.isOver || !organisation.hasLake) return;
        const killedAfterMs = random.chance(0.3) ? 500 + random.below(2_000) : undefined;
        await runIntake(world, organisation, ['pull', copyOf(world, organisation)], killedAfterMs);
        count('pulls');
      }
    },
  }),
};

export const copyOf = ({ folder }: World, { slug }: Organisation): string => join(folder, `pulled-${slug}`);
