import { setTimeout as sleep } from 'node:timers/promises';
import { many } from '../../test/support/new-records.ts';
import { idOf } from '../world/records.ts';
import { ask, type ClientKind, type Reply, type RunningClient, type Stage } from './client.ts';

/**
 * Uploads files in runs: opens each run, sometimes twice, sends its requests until they are answered, and ends it. A run's
 * counts must be the sums of its answers, and nothing may be stored in it once it has ended.
 */
export const runs: ClientKind = {
  name: 'runs of files',
  promises: 'I4 I5 I11',
  perOrganisation: 1,
  start: (stage) => new Runs(stage),
};

const shops = 40;
const noCounts = { received: 0, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };

type Counts = typeof noCounts;

interface EndedRun {
  readonly runId: string;
  readonly status: string;
  readonly files: readonly Counts[];
  readonly rewinds: number;
}

class Runs implements RunningClient {
  readonly #stage: Stage;
  readonly #ids: readonly string[];
  readonly #ended: EndedRun[] = [];

  constructor(stage: Stage) {
    const { organisation } = stage;
    this.#stage = stage;
    this.#ids = many(shops, (index) => idOf(organisation.seed, 'shops of runs', index));
    for (const id of this.#ids) organisation.merged.add(id);
  }

  async run(): Promise<void> {
    const { organisation, random, count } = this.#stage;
    while (!this.#stage.isOver) {
      const { rewinds } = organisation;
      const files = await this.#uploadOne();
      if (files === null) continue;
      count('runs');
      if (organisation.rewinds === rewinds) this.#ended.push({ ...files, rewinds });
      await sleep(random.below(500));
    }
  }

  /** Returns null if the stage is over or a restore has lost the run. */
  async #uploadOne(): Promise<Omit<EndedRun, 'rewinds'> | null> {
    const { random, violate } = this.#stage;
    const files = many(1 + random.below(3), (index) => ({
      name: `shops-${index}.csv`,
      bytes: random.below(1_000_000),
      sha256: random.hex(64),
      type: 'shops',
    }));
    const open = { body: { name: 'nightly', files }, headers: { 'idempotency-key': random.hex(32) } };
    const opened = await this.#answered('/v1/runs', open);
    if (!opened) return null;
    const runId: string = opened.body.run_id;
    const again = random.chance(0.3) ? await this.#answered('/v1/runs', open) : opened;
    if (!again) return null;
    if (again.body.run_id !== runId)
      violate('I4: a run was opened twice', { first: opened.body, again: again.body });
    const sums = files.map(() => ({ ...noCounts }));
    for (const _ of many(1 + random.below(6), () => 0)) {
      const file = random.below(files.length);
      const reply = await this.#upload(runId, file);
      if (!reply) return null;
      const counts: Counts = reply.body.batches[0].data.counts;
      const sum = sums[file] as Counts;
      for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += counts[name];
    }
    const status = random.chance(0.8) ? 'finished' : 'failed';
    const end = await this.#answered(`/v1/runs/${runId}/end`, { body: { status } });
    if (!end) return null;
    const late = await this.#upload(runId, 0);
    if (late && !isEnded(late)) violate('I2: stored in a run that has ended', late);
    return { runId, status, files: sums };
  }

  #upload(runId: string, file: number): Promise<Reply | null> {
    const { organisation, random } = this.#stage;
    const records = many(1 + random.below(50), () => ({
      shop_id: random.pick(this.#ids),
      name: `${organisation.slug} of a run`,
      region: random.chance(0.1) ? 'nowhere' : random.pick(['GB', 'DE']),
    }));
    const path = `/v1/data/shops?run_id=${runId}&file=${file}&first_record=1`;
    return this.#answered(path, { body: { records }, headers: { 'idempotency-key': random.hex(32) } });
  }

  /** Sends a repeatable request until it is answered. Returns null if the stage is over or a restore has lost the run. */
  async #answered(
    path: string,
    sent: { body: object; headers?: Record<string, string> },
  ): Promise<Reply | null> {
    const { organisation, violate, world } = this.#stage;
    const { rewinds } = organisation;
    // A process of an older version does not know runs.
    const isOld = ({ status }: Reply) =>
      world.options.oldMain !== undefined && (status === 400 || status === 404);
    for (;;) {
      const reply = await ask(this.#stage, 'POST', path, sent);
      if (organisation.rewinds > rewinds) return null;
      if (reply && (reply.status < 300 || reply.body.batches || isEnded(reply))) return reply;
      if (this.#stage.isOver) return null;
      if (reply && !isOld(reply)) {
        violate('I8: a request of a run was refused', { path, reply });
        return null;
      }
      await sleep(200);
    }
  }

  async check(): Promise<void> {
    const { organisation, violate } = this.#stage;
    for (const { runId, status, files, rewinds } of this.#ended) {
      if (rewinds < organisation.rewinds) continue;
      const reply = await ask(this.#stage, 'GET', `/v1/runs/${runId}`);
      const found = reply?.body.files?.map(({ counts }: { counts: Counts }) => counts);
      const differs = files.some((sum, file) =>
        Object.entries(sum).some(([name, value]) => found?.[file]?.[name] !== value),
      );
      if (reply?.body.status !== status || differs)
        violate('I5: the counts of a run differ from its answers', {
          runId,
          status,
          files,
          found: reply?.body,
        });
    }
  }
}

const isEnded = ({ body }: Reply): boolean => body?.code === 'run_ended';
