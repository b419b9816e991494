import { setTimeout as sleep } from 'node:timers/promises';
import { Intake, IntakeError } from '../../client/src/index.ts';
import type { Values } from '../../test/fault/erasure-mixture/oracle.ts';
import { readTable } from '../checker/read-table.ts';
import { comparedTable, comparedTables, type Kind, textsOf } from '../checker/stored-text.ts';
import type { ClientKind, RunningClient, Stage } from './client.ts';

/** Follows the change feed through the library and keeps a copy, which must equal the database in the end. */
export const followers: ClientKind = {
  name: 'followers of the feed',
  promises: 'I9',
  perOrganisation: 1,
  start: (stage) => new Follower(stage),
};

/** A copied record, with the time of its version. */
interface Copied {
  readonly values: Values;
  readonly record: Readonly<Record<string, unknown>>;
}

export class Follower implements RunningClient {
  readonly #stage: Stage;
  readonly #intake: Intake;
  /** By type and id. */
  readonly #copy = new Map<string, Copied>();
  #cursor: string | undefined;
  #caughtUpMs = 0;
  readonly #done = new AbortController();
  /** Aborted when the copy is compared, or when the run ends. */
  readonly #stop: AbortSignal;
  #following: Promise<void> = Promise.resolve();

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#stop = AbortSignal.any([this.#done.signal, stage.ended]);
    this.#intake = new Intake({
      url: stage.world.url,
      key: stage.organisation.key,
      retryForMs: 20_000,
      onRetry: () => stage.count('retries of the library'),
    });
  }

  async run(): Promise<void> {
    this.#following = this.#follow();
    while (!this.#stage.isOver) await sleep(200);
  }

  async #follow(): Promise<void> {
    while (!this.#stop.aborted) {
      try {
        const after = this.#cursor === undefined ? {} : { after: this.#cursor };
        for await (const event of this.#intake.changes({ ...after, signal: this.#stop })) {
          if (event.type === undefined) this.#caughtUpMs = performance.now();
          else if (event.expired_before !== undefined) this.#removeOlder(event.type, event.expired_before);
          else this.#apply(event);
          this.#cursor = event.cursor;
        }
      } catch (error) {
        if (this.#stop.aborted) return;
        const isOld = error instanceof IntakeError && error.code === 'cursor_too_old';
        if (isOld) await this.#startAgain();
        else if (error instanceof IntakeError && error.status !== null && error.status < 500)
          this.#stage.violate('I9: the feed failed for good', { error: String(error), code: error.code });
        await sleep(300);
      }
    }
  }

  #apply(change: { type: string; id: string; record: object | null }): void {
    this.#stage.count('changes read');
    const key = `${change.type} ${change.id}`;
    if (change.record === null) return void this.#copy.delete(key);
    const table = comparedTable(change.type as Kind);
    const record = change.record as Record<string, unknown>;
    const values = textsOf(table, record);
    const before = this.#copy.get(key)?.values;
    if (before?.updated && values.updated && Number(values.updated) < Number(before.updated))
      this.#stage.violate('I9: a record went back', { key, before, values });
    this.#copy.set(key, { values, record });
  }

  #removeOlder(type: string, before: string): void {
    for (const [key, { record }] of this.#copy)
      if (key.startsWith(`${type} `) && Date.parse(String(record.created)) < Date.parse(before))
        this.#copy.delete(key);
  }

  /** Empties the copy and begins with exports, as docs/uploading/feed.md says. */
  async #startAgain(): Promise<void> {
    this.#stage.count('copies started again');
    this.#copy.clear();
    let cursor: string | null = null;
    const { world, organisation } = this.#stage;
    for (const { kind, fields } of comparedTables) {
      const path = kind === 'interactions' ? '/user-interactions' : `/v1/data/${kind}?include_deleted=true`;
      for (;;) {
        try {
          const answer = await fetch(world.url + path, {
            headers: { authorization: `Bearer ${organisation.key}`, accept: 'application/x-ndjson' },
            signal: this.#stop,
          });
          if (!answer.ok) throw new Error(`${answer.status}`);
          const began = answer.headers.get('changes-cursor');
          const lines = (await answer.text()).split('\n').filter(Boolean);
          cursor ??= began;
          for (const line of lines) {
            const record = JSON.parse(line);
            const id =
              kind === 'interactions' ? record.interaction_id : record[Object.keys(fields)[0] as string];
            this.#copy.set(`${kind} ${id}`, { values: textsOf(comparedTable(kind), record), record });
          }
          break;
        } catch {
          if (this.#stop.aborted) return;
          await sleep(500);
        }
      }
    }
    this.#cursor = cursor ?? undefined;
  }

  async check(): Promise<void> {
    let wrong: unknown[] = [];
    const beganMs = performance.now();
    // Changes arrive within a second, but the machine may be slow, and the stream may have to be opened again.
    for (
      const deadlineMs = this.#stage.world.deadline(90_000);
      performance.now() < deadlineMs;
      await sleep(1_000)
    ) {
      wrong = await this.#differences();
      if (wrong.length === 0) break;
    }
    this.#done.abort();
    await this.#following;
    this.#stage.count('copied records compared', this.#copy.size);
    if (wrong.length === 0) return;
    // A reader that is merely late has not been sent the cursor that says that nothing is left.
    const isCaughtUp = this.#caughtUpMs > beganMs;
    this.#stage.violate(isCaughtUp ? 'I9: a copy differs from the database' : 'I9: a reader is late', {
      differences: wrong.length,
      first: wrong.slice(0, 3),
    });
  }

  async #differences(): Promise<unknown[]> {
    const stored = await storedRecords(this.#stage);
    const wrong: unknown[] = [];
    for (const [key, values] of stored) {
      const copied = this.#copy.get(key)?.values;
      if (JSON.stringify(copied) !== JSON.stringify(values)) wrong.push({ key, copied, stored: values });
    }
    for (const key of this.#copy.keys()) if (!stored.has(key)) wrong.push({ key, isExtra: true });
    return wrong;
  }
}

/** Reads everything that the database has for an organisation, by type and id. */
export async function storedRecords({ world, organisation }: Stage): Promise<Map<string, Values>> {
  const all = new Map<string, Values>();
  await world.database.connected(async (client) => {
    for (const table of comparedTables)
      for (const { key, values } of await readTable(client, organisation.id, table))
        all.set(`${table.kind} ${key}`, values);
  });
  return all;
}
