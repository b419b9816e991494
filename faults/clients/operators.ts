import { setTimeout as sleep } from 'node:timers/promises';
import type { Key } from '../world/organisation.ts';
import { ask, type ClientKind, type RunningClient, type Stage } from './client.ts';

/** Rotates and revokes keys. A revoked key must be refused by every process within five seconds. */
export const keyOperators: ClientKind = {
  name: 'an operator of keys',
  promises: 'I6',
  perOrganisation: 0.7,
  start: (stage) => new KeyOperator(stage),
};

/** The service promises five seconds. The rest is for a machine that was frozen or is slow. */
const refusedWithinMs = 15_000;

class KeyOperator implements RunningClient {
  readonly #stage: Stage;
  readonly #revoked: Key[] = [];
  #rewinds = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { organisation, world, random, over, count } = this.#stage;
    while (!this.#stage.isOver) {
      await sleep(2_000 + random.below(6_000), undefined, { signal: over }).catch(() => {});
      if (this.#stage.isOver) return;
      this.#rewinds = organisation.rewinds;
      // No client uses this key, because the library gives up when its key is refused.
      const { status, body } = await world.admin<Key>('POST', '/keys', { organisation: organisation.slug });
      if (status !== 201) continue;
      let key = body;
      if (random.chance(0.5)) {
        const rotated = await world.admin<Key>('POST', `/keys/${key.key_id}/rotate`, {
          grace_seconds: 3_600,
        });
        await this.#expect(rotated.status === 201 ? rotated.body.key : key.key, true);
        if (rotated.status === 201) key = rotated.body;
        count('keys rotated');
      }
      await this.#expect(key.key, true);
      await world.admin('POST', `/keys/${key.key_id}/revoke`);
      count('keys revoked');
      this.#revoked.push(key);
      await sleep(refusedWithinMs, undefined, { signal: over }).catch(() => {});
      if (!this.#stage.isOver) await this.#expect(key.key, false);
    }
  }

  async #expect(key: string, isAccepted: boolean): Promise<void> {
    const { rewinds } = this.#stage.organisation;
    const reply = await ask(this.#stage, 'GET', '/v1/data', { key });
    // A restore may have lost the key.
    if (!reply || reply.status === 429 || (isAccepted && rewinds > this.#rewinds)) return;
    if ((reply.status === 200) !== isAccepted)
      this.#stage.violate(`I6: a key is ${isAccepted ? 'refused' : 'accepted'}`, { status: reply.status });
  }

  async check(): Promise<void> {
    await sleep(6_000);
    for (const { key } of this.#revoked) await this.#expect(key, false);
  }
}

/** Looks for a way into another organisation, whose records have the same ids. */
export const neighbours: ClientKind = {
  name: 'curious neighbours',
  promises: 'I6',
  perOrganisation: 0.7,
  start: (stage) => ({ run: () => pry(stage) }),
};

async function pry(stage: Stage): Promise<void> {
  const { organisation, random, over, violate, count } = stage;
  while (!stage.isOver) {
    await sleep(500 + random.below(2_000), undefined, { signal: over }).catch(() => {});
    const reply = await ask(stage, 'GET', `/v1/data/${random.pick(['shops', 'tags', 'branches'])}?limit=50`);
    if (reply?.status !== 200) continue;
    const list = Object.values(reply.body).find(Array.isArray) ?? [];
    count('records looked at for another organisation', list.length);
    const foreign = list.filter(
      ({ name }) => typeof name === 'string' && !name.startsWith(`${organisation.slug} `),
    );
    if (foreign.length > 0) violate('I6: a record of another organisation', foreign[0]);
  }
}
