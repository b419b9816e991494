import { setTimeout as sleep } from 'node:timers/promises';
import type { Write } from '../../test/fault/erasure-mixture/oracle.ts';
import { many } from '../../test/support/new-records.ts';
import { ask, type ClientKind, type Stage } from './client.ts';
import { makeInteraction, settleInteraction } from './interactions.ts';

/** Replays rejections. What was rejected for a missing reference may be stored by it, once and unaltered. */
export const replays: ClientKind = {
  name: 'replays of rejections',
  promises: 'I4 I11',
  perOrganisation: 1,
  start: (stage) => ({ run: () => replay(stage) }),
};

async function replay(stage: Stage): Promise<void> {
  const { random, over, count, violate } = stage;
  const filters = ['transactions', 'student-favourites', 'interactions', 'branches', 'shop-tags', 'all'];
  while (!stage.isOver) {
    await sleep(1_000 + random.below(4_000), undefined, { signal: over }).catch(() => {});
    const type = random.pick(filters);
    const query = type === 'all' ? '' : `?type=${type}`;
    const reply = await ask(stage, 'POST', `/v1/rejections/replay${query}`);
    if (!reply) continue;
    count('replays');
    if (![200, 207, 400].includes(reply.status) || !Array.isArray(reply.body.batches))
      violate('I8: a replay failed', { status: reply.status, body: reply.body });
  }
}

/** Sends batches of interactions with keys, and repeats some of them. */
export const interactionBatches: ClientKind = {
  name: 'batches of interactions',
  promises: 'I1 I4 I5',
  perOrganisation: 1,
  start: (stage) => ({ run: () => sendBatches(stage) }),
};

const origin = 'https://shop.example';

/** Sends interactions from pages, with a browser key. The answer does not reveal whether a reference was missing. */
export const browsers: ClientKind = {
  name: 'pages with browser keys',
  promises: 'I1 I4 I6',
  perOrganisation: 1,
  start: (stage) => ({
    run: () => sendBatches(stage, () => issueBrowserKey(stage)),
  }),
};

async function issueBrowserKey({ world, organisation }: Stage): Promise<string> {
  const { status, body } = await world.admin<{ key: string }>('POST', '/keys', {
    ...{ organisation: organisation.slug, browser: true, origins: [origin] },
  });
  if (status !== 201) throw new Error(`a browser key could not be issued: ${status}`);
  return body.key;
}

async function sendBatches(stage: Stage, issueKey?: () => Promise<string>): Promise<void> {
  const { organisation, random, over, count } = stage;
  let { rewinds } = organisation;
  let browserKey = await issueKey?.();
  while (!stage.isOver) {
    await sleep(50 + random.below(400), undefined, { signal: over }).catch(() => {});
    const size = browserKey && random.chance(0.5) ? 1 : 1 + random.below(browserKey ? 40 : 700);
    const made = many(size, () => makeInteraction(organisation, random));
    const writes = organisation.ledger.begin(made.map(({ sent }) => sent));
    const records = made.map(({ record }) => record);
    const isSingle = browserKey !== undefined && size === 1;
    const headers = { 'idempotency-key': random.uuid(), ...(browserKey && { origin }) };
    const sent = { body: isSingle ? (records[0] as object) : { records }, headers };
    const request = { ...sent, ...(browserKey && { key: browserKey }) };
    const path = isSingle ? '/user-interactions' : '/user-interactions/batch';
    for (let attempt = 0; attempt < 60; attempt++) {
      const reply = await ask(stage, 'POST', path, request);
      if (!reply || hasUnknown(reply.body)) {
        await sleep(300 + random.below(500));
        continue;
      }
      // A process with lower limits may refuse it, after another one has stored it.
      if (JSON.stringify(reply.body).includes('too_many_records')) break;
      // A restore may have lost the key.
      if (reply.status === 401 && rewinds < organisation.rewinds) {
        rewinds = organisation.rewinds;
        browserKey = await issueKey?.();
        break;
      }
      if (browserKey) settleAccepted(stage, made, writes, reply);
      else settleBatch(stage, made, writes, reply);
      count(browserKey ? 'requests of pages' : 'batches of interactions');
      // A page may send its batch again, for example after it was reloaded.
      if (!random.chance(0.2) || attempt > 0) break;
    }
  }
}

const hasUnknown = (body: { batches?: { status: number }[] }) =>
  body?.batches?.some(({ status }) => status === 500) === true;

type Answered = { readonly status: number; readonly body: Record<string, never> };

function settleBatch(
  stage: Stage,
  made: ReturnType<typeof makeInteraction>[],
  writes: Write[],
  reply: Answered,
) {
  const batches = reply.body.batches as
    | { data: { errors: { index: number; code: string }[]; interaction_ids?: (string | null)[] } }[]
    | undefined;
  if (!batches) return stage.violate('I8: a batch of interactions failed', reply);
  const failures = new Map(
    batches.flatMap(({ data }) => data.errors.map(({ index, code }) => [index, code] as const)),
  );
  const ids = batches.flatMap(({ data }) => data.interaction_ids ?? []);
  for (const [index, write] of writes.entries()) {
    const code = failures.get(index);
    if ((code === undefined) !== (typeof ids[index] === 'string'))
      stage.violate('I5: ids and errors of a batch do not agree', { index, code, id: ids[index] });
    settleInteraction(stage, made[index] as (typeof made)[number], write, code ? 'rejected' : 'stored', code);
  }
}

function settleAccepted(
  stage: Stage,
  made: ReturnType<typeof makeInteraction>[],
  writes: Write[],
  reply: Answered,
) {
  const { status } = reply;
  const body = reply.body as { accepted?: number; errors?: { index: number; code: string }[] };
  const single = status === 400 && made.length === 1;
  if (!single && status !== 202 && !(status === 400 && body.errors))
    return stage.violate('I8: a page’s interactions failed', reply);
  const failed = new Set(single ? [0] : (body.errors ?? []).map(({ index }) => index));
  for (const [index, write] of writes.entries()) {
    const one = made[index] as (typeof made)[number];
    if (failed.has(index) !== one.isInvalid)
      stage.violate('I8: a page’s interaction was judged wrongly', { record: one.record, reply });
    stage.organisation.ledger.settle(write, one.isInvalid ? 'refused' : 'accepted');
  }
}
