import { setTimeout as sleep } from 'node:timers/promises';
import type { Mode, Person } from '../../test/fault/erasure-mixture/people.ts';
import { judgeCertificate } from '../checker/check-certificate.ts';
import { makeRecord } from '../world/records.ts';
import { ask, type ClientKind, type Reply, type RunningClient, type Stage } from './client.ts';

/** Erases people, reads them afterwards, fetches the certificates, and lifts some erasures. */
export const erasures: ClientKind = {
  name: 'erasures and lifts',
  promises: 'I10',
  perOrganisation: 1,
  start: (stage) => new Erasing(stage),
};

/** How long an erasure may take after the clients have ended, and nothing is disturbed any more. */
const sweptWithinMs = 300_000;
const peoplePerErasureMax = 12;

interface Requested {
  readonly id: string;
  readonly path: string;
  readonly mode: Mode;
  readonly people: readonly Person[];
  readonly isLifted: boolean;
}

class Erasing implements RunningClient {
  readonly #stage: Stage;
  readonly #open: Requested[] = [];
  /** People whose erasure was swept and is not lifted. */
  readonly #erased: Person[] = [];

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { organisation, random } = this.#stage;
    // At most half of the people are erased, so that there is always somebody to lose.
    const left = organisation.people.filter((_, at) => at % 2 === 1);
    while (!this.#stage.isOver) {
      await sleep(300 + random.below(2_500), undefined, { signal: this.#stage.over }).catch(() => {});
      if (this.#stage.isOver) break;
      const people = left.splice(0, 1 + random.below(peoplePerErasureMax));
      if (people.length > 0) await this.#erase(people, random.pick(['anonymise', 'delete']));
      for (const one of [...this.#open]) {
        if (this.#stage.isOver || !(await this.#isSwept(one))) continue;
        this.#open.splice(this.#open.indexOf(one), 1);
        await this.#finish(one);
      }
    }
  }

  async #erase(people: readonly Person[], mode: Mode): Promise<void> {
    const { random, violate, count } = this.#stage;
    const isLifted = random.chance(0.3);
    const sentMs = performance.now();
    for (const person of people) {
      person.modes.add(mode);
      person.erasedFromMs = Math.min(person.erasedFromMs, sentMs);
    }
    const byUser = random.chance(0.3);
    const ids = people.map((person) => (byUser ? person.userId : (person.customers[0] as string)));
    const body = { mode, [byUser ? 'user_ids' : 'customer_ids']: ids };
    let reply = await ask(this.#stage, 'POST', '/v1/erasures', { body });
    // An erasure whose answer was lost may exist too, so lifting the known one may not be enough.
    if (!reply) for (const person of people) person.isUncertain = isLifted;
    reply ??= await this.#untilAnswered('POST', '/v1/erasures', body);
    if (reply.status !== 202) {
      for (const person of people) person.isUncertain = true;
      if (reply.status === 409 && reply.body.code === 'too_many_erasures') return;
      return violate('I10: an erasure was refused', { status: reply.status, body: reply.body });
    }
    const answeredMs = performance.now();
    for (const [at, person] of people.entries())
      person.namedFromMs.set(
        ids[at] as string,
        Math.min(answeredMs, person.namedFromMs.get(ids[at] as string) ?? answeredMs),
      );
    count('people erased', people.length);
    const id = reply.body.erasure_id;
    this.#open.push({ id, path: `/v1/erasures/${id}`, mode, people, isLifted });
    if (!byUser) await this.#expectNothing(random.pick(people), 'after the 202');
  }

  async #isSwept({ path }: Requested): Promise<boolean> {
    const reply = await ask(this.#stage, 'GET', path);
    const state = reply?.body.state;
    const isDone = (state === 'swept' || state === 'done') && reply?.body.lake !== 'pending';
    if (isDone) return true;
    // A certificate must not exist before the erasure is complete. The state may change in between.
    const certificate = await ask(this.#stage, 'GET', `${path}/certificate`);
    if (certificate?.status === 200) {
      const now = await this.#untilAnswered('GET', path);
      if (now.body.state !== 'swept' && now.body.state !== 'done')
        this.#stage.violate('I10: a certificate before the sweep', { body: now.body });
    }
    return false;
  }

  async #judgeCertificate({ id, path, mode, people }: Requested): Promise<void> {
    const { violate, count, organisation } = this.#stage;
    const { status, body } = await this.#untilAnswered('GET', `${path}/certificate`);
    if (status !== 200) return violate('I10: no certificate of a swept erasure', { body, status });
    const published = await this.#untilAnswered('GET', '/v1/erasure-keys');
    const expected = { organisationId: organisation.id, erasureId: id, mode, people: people.length };
    const wrong = judgeCertificate(body, published.body.keys, expected);
    if (wrong) violate(`I10: a false certificate: ${wrong}`, { body, expected });
    count('certificates');
  }

  async #finish(requested: Requested): Promise<void> {
    const { violate, count } = this.#stage;
    const { path, people, isLifted } = requested;
    await this.#judgeCertificate(requested);
    for (const person of people.slice(0, 3)) await this.#expectNothing(person, 'after the sweep');
    if (!isLifted) {
      this.#erased.push(...people);
      return this.#expectRefusal();
    }
    const sentMs = performance.now();
    const { status, body } = await this.#untilAnswered('DELETE', `${path}/suppression`);
    if (status !== 200) return violate('I10: an erasure could not be lifted', { status, body });
    count('people lifted', people.length);
    for (const person of people) {
      person.liftSentMs = sentMs;
      person.liftedMs = performance.now();
    }
    await this.#expectRefusal();
  }

  /** Uploads somebody again who stays erased. */
  async #expectRefusal(): Promise<void> {
    const { organisation, random, violate, count } = this.#stage;
    if (this.#erased.length === 0) return;
    const index = organisation.people.indexOf(random.pick(this.#erased));
    const { record, sent } = makeRecord(organisation, 'customers', random, { index, isSound: true });
    const [write] = organisation.ledger.begin([sent]);
    const reply = await ask(this.#stage, 'POST', '/v1/data/customers', { body: { records: [record] } });
    const data = reply?.body.batches?.[0]?.data;
    if (!write || !data) return;
    count('erased people uploaded again');
    const code = data.errors[0]?.code;
    organisation.ledger.settle(write, code === 'erased' ? 'refused' : 'unknown', code ?? null);
    if (code === undefined)
      violate('I10: an erased person was stored again', { id: sent.id, counts: data.counts });
  }

  async #expectNothing({ customers: [customer], userId }: Person, when: string): Promise<void> {
    const reads = [
      `/v1/data/customers/${customer}`,
      `/user-interactions?student_id=${customer}`,
      ...(when === 'after the sweep' ? [`/user-interactions?user_id=${userId}`] : []),
    ];
    for (const path of reads) {
      const reply = await ask(this.#stage, 'GET', path);
      if (!reply || reply.status === 404) continue;
      const { interactions } = reply.body;
      if (reply.status !== 200 || !interactions || interactions.length > 0)
        this.#stage.violate(`I10: readable ${when}`, {
          path,
          status: reply.status,
          first: interactions?.[0],
        });
    }
  }

  async #untilAnswered(method: string, path: string, body?: object): Promise<Reply> {
    for (let attempt = 0; attempt < 200; attempt++) {
      const reply = await ask(this.#stage, method, path, body ? { body } : {});
      if (reply) return reply;
      await sleep(300);
    }
    throw new Error(`no process answers ${method} ${path}`);
  }

  async check(): Promise<void> {
    // Lift last, because lifting one erasure must not let the people of the others in.
    const open = this.#open.toSorted((one, other) => Number(one.isLifted) - Number(other.isLifted));
    for (const one of open) {
      const deadlineMs = performance.now() + sweptWithinMs;
      while (!(await this.#isSwept(one)) && performance.now() < deadlineMs) await sleep(500);
      const { status, body } = await this.#untilAnswered('GET', one.path);
      if (status === 200 && (body.state === 'swept' || body.state === 'done') && body.lake !== 'pending') {
        await this.#finish(one);
        continue;
      }
      this.#stage.violate('I10: not swept', { status, body });
      // What is left of these people follows from that.
      for (const person of one.people) person.isUncertain = true;
    }
  }
}
