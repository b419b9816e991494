import { setTimeout as sleep } from 'node:timers/promises';
import type { Person } from '../../test/fault/erasure-mixture/people.ts';
import { ask, type ClientKind, type RunningClient, type Stage } from './client.ts';

/** Asks what is stored about people. The answer is complete, and about nobody else. */
export const accessRequests: ClientKind = {
  name: 'access requests',
  promises: 'I6 I10 I11',
  perOrganisation: 0.7,
  start: (stage) => new Access(stage),
};

const collectedWithinMs = 300_000;

interface Requested {
  readonly id: string;
  readonly person: Person;
  readonly rewinds: number;
}

class Access implements RunningClient {
  readonly #stage: Stage;
  readonly #requested: Requested[] = [];

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { random, over, organisation, count } = this.#stage;
    while (!this.#stage.isOver) {
      await sleep(2_000 + random.below(6_000), undefined, { signal: over }).catch(() => {});
      const person = random.pick(organisation.people);
      const body = { customer_ids: person.customers };
      const reply = await ask(this.#stage, 'POST', '/v1/access-requests', { body });
      if (reply?.status !== 202) continue;
      count('access requests');
      const { rewinds } = organisation;
      this.#requested.push({ id: reply.body.access_request_id, person, rewinds });
    }
  }

  async check(): Promise<void> {
    const { organisation, violate } = this.#stage;
    for (const { id, person, rewinds } of this.#requested) {
      const path = `/v1/access-requests/${id}`;
      let state: string | undefined;
      const deadlineMs = performance.now() + collectedWithinMs;
      for (; state !== 'done' && performance.now() < deadlineMs; await sleep(300)) {
        const reply = await ask(this.#stage, 'GET', path);
        if (reply?.status === 404 && rewinds < organisation.rewinds) break;
        state = reply?.body.state;
        if (state === 'done') await this.#compare(path, person, reply?.body.records);
      }
      if (state !== 'done' && rewinds === organisation.rewinds)
        violate('I11: an access request is not done', { id, state });
    }
  }

  async #compare(path: string, person: Person, counts: Record<string, number>): Promise<void> {
    const { violate, count } = this.#stage;
    const headers = { accept: 'application/x-ndjson' };
    const reply = await ask(this.#stage, 'GET', `${path}/records`, { headers });
    if (reply?.status !== 200)
      return violate('I11: no records of an access request', { status: reply?.status });
    const lines = String(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
    const records = lines
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    count('records of access requests', records.length);
    const sum = Object.values(counts).reduce((total, one) => total + one, 0);
    if (sum !== records.length && !person.isErased)
      violate('I11: an access request counts other records', { counts, records: records.length });
    const foreign = records.find(
      ({ record }) => record?.student_id && !person.customers.includes(record.student_id),
    );
    if (foreign) violate('I6: a record of another person', { person: person.customers, foreign });
    const left = person.staysErased ? records.find(({ type }) => type === 'customers') : undefined;
    if (left) violate('I10: an access request returns an erased person', { path });
  }
}
