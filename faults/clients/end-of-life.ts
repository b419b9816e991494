import { setTimeout as sleep } from 'node:timers/promises';
import { Organisation } from '../world/organisation.ts';
import { ask, type ClientKind, type Stage } from './client.ts';
import { uploadBase } from './exports.ts';

/** Deletes an organisation of its own and restores it, and sets quotas that are too small. */
export const endOfLife: ClientKind = {
  name: 'deleted and restored organisations, quotas',
  promises: 'I1 I6 I11',
  perOrganisation: 0.4,
  start: (stage) => ({ run: () => live(stage) }),
};

/** Processes learn of a change within seconds. The rest is for a slow machine. */
const patience = 100;

async function live(stage: Stage): Promise<void> {
  const { world, random, over, organisation: neighbour, count } = stage;
  const slug = `${neighbour.slug}-${random.hex(6)}`;
  const organisation = await Organisation.create(world, slug, random.below(2 ** 31));
  const own: Stage = {
    ...{ world, organisation, random, over, count, ended: stage.ended, violate: stage.violate },
    get isOver() {
      return stage.isOver;
    },
  };
  const { rewinds } = neighbour;
  const isLost = () => neighbour.rewinds > rewinds;
  const uploaded = await uploadBase(own).then(
    () => true,
    () => false,
  );
  if (!uploaded) return;
  while (!stage.isOver && !isLost()) {
    const before = await recordsOf(own);
    await world.admin('DELETE', `/organisations/${slug}`);
    await expectStatus(own, 410, isLost);
    await world.admin('POST', `/organisations/${slug}/restore`);
    await expectStatus(own, 200, isLost);
    count('organisations deleted and restored');
    const after = await recordsOf(own);
    if (before !== null && after !== null && before !== after && !isLost())
      stage.violate('I1: a restored organisation has other records', { before, after });
    await tryQuota(own, isLost);
    await sleep(3_000 + random.below(6_000), undefined, { signal: over }).catch(() => {});
  }
}

async function tryQuota(stage: Stage, isLost: () => boolean): Promise<void> {
  const { world, organisation, violate, count } = stage;
  const path = `/organisations/${organisation.slug}`;
  await world.admin('PATCH', path, { records_stored_max: 1 });
  const body = { records: [{ tag_id: stage.random.uuid(), name: 'over the quota' }] };
  let status: number | undefined;
  for (let attempt = 0; attempt < patience && status !== 403 && !isLost(); attempt++) {
    status = (await ask(stage, 'POST', '/v1/data/tags', { body }))?.status;
    if (status !== 403) await sleep(300);
  }
  if (status !== 403 && !isLost()) violate('I11: a quota is not enforced', { status });
  await world.admin('PATCH', path, { records_stored_max: null });
  count('quotas enforced');
}

async function recordsOf(stage: Stage): Promise<string | null> {
  const reply = await ask(stage, 'GET', '/v1/data');
  if (reply?.status !== 200) return null;
  const types: { type: string; records: number }[] = reply.body.types;
  return JSON.stringify(
    types.map(({ type, records }) => [type, records]).filter(([type]) => type !== 'tags'),
  );
}

async function expectStatus(stage: Stage, wanted: number, isLost: () => boolean): Promise<void> {
  let status: number | undefined;
  for (let attempt = 0; attempt < patience && !isLost(); attempt++) {
    status = (await ask(stage, 'GET', '/v1/data'))?.status;
    if (status === wanted) return;
    await sleep(300);
  }
  if (!isLost()) stage.violate('I11: a deletion or a restore has no effect', { wanted, status });
}
