import { setTimeout as sleep } from 'node:timers/promises';
import type { Mode, Person } from './people.ts';
import type { Random } from './random.ts';
import type { Round } from './round.ts';

/** An erasure that will be requested: whom, how, and whether it is lifted when it is swept. */
interface Plan {
  readonly people: readonly Person[];
  readonly mode: Mode;
  /** Names every id of the person. Otherwise, one id stands for the others. */
  readonly isComplete: boolean;
  readonly isLifted: boolean;
  /** For an erasure that is lifted while another one stands: resolves when the other one is answered. */
  readonly other: Promise<void>;
  readonly requested: () => void;
}

/** Requests the erasures of the round in parallel, spread over its time, and follows each of them until it is swept. */
export async function startErasures(round: Round, random: Random, ms: number): Promise<number> {
  const plans = drawPlans(round, random);
  await Promise.all(
    plans.map(async (plan) => {
      const own = random.fork();
      await sleep(own.below(ms));
      await runPlan(round, own, plan);
    }),
  );
  return plans.length;
}

function drawPlans({ world }: Round, random: Random): Plan[] {
  const nothing = Promise.resolve();
  const plans: Plan[] = [];
  const add = (people: readonly Person[], more: Partial<Plan>) => {
    const mode = random.pick(['anonymise', 'delete'] as const);
    plans.push({
      ...{ people, mode, isComplete: false, isLifted: false, other: nothing, requested: () => {} },
      ...more,
    });
  };
  for (const fate of ['erased', 'erased twice', 'lifted', 'lifted once'] as const) {
    const left = world.people.filter((person) => person.fate === fate);
    while (left.length > 0) {
      const people = left.splice(0, 1 + random.below(20));
      const { promise: other, resolve: requested } = Promise.withResolvers<void>();
      add(people, { isLifted: fate.startsWith('lifted'), ...(fate === 'lifted once' && { other }) });
      if (fate === 'erased twice' || fate === 'lifted once') add(people, { isComplete: true, requested });
    }
  }
  return plans;
}

async function runPlan(round: Round, random: Random, plan: Plan): Promise<void> {
  const { customer_ids, user_ids } = namesIn(plan, random);
  const sentMs = performance.now();
  for (const person of plan.people) {
    person.modes.add(plan.mode);
    person.erasedFromMs = Math.min(person.erasedFromMs, sentMs);
  }
  const body = {
    mode: plan.mode,
    ...(customer_ids.length > 0 && { customer_ids }),
    ...(user_ids.length > 0 && { user_ids }),
  };
  let reply = await round.ask(random, 'POST', '/v1/erasures', { body });
  if (!reply) {
    for (const person of plan.people) if (person.fate === 'lifted') person.isUncertain = true;
    reply = await round.askUntilAnswered(random, 'POST', '/v1/erasures', body);
  }
  if (reply.status !== 202) throw new Error(`an erasure got ${reply.status}: ${JSON.stringify(reply.body)}`);
  plan.requested();
  const answeredMs = performance.now();
  const named = new Set([...customer_ids, ...user_ids].map((id) => id.toLowerCase()));
  for (const person of plan.people)
    for (const id of person.ids)
      if (named.has(id))
        person.namedFromMs.set(id, Math.min(answeredMs, person.namedFromMs.get(id) ?? answeredMs));
  const person = random.pick(plan.people);
  await expectNothing(round, random, person, 'after the 202');
  await follow(round, random, plan, reply.body.erasure_id);
}

function namesIn({ people, isComplete }: Plan, random: Random) {
  const customer_ids: string[] = [];
  const user_ids: string[] = [];
  const inAnyCase = (id: string) => (random.chance(0.3) ? random.mixCase(id) : id);
  for (const { customers, userId } of people) {
    const userForm = customers.length > 0 ? inAnyCase(userId) : userId;
    if (isComplete) {
      customer_ids.push(...customers);
      user_ids.push(userForm);
    } else if (customers.length === 0 || random.chance(0.3)) user_ids.push(userForm);
    else customer_ids.push(inAnyCase(random.pick(customers)));
  }
  return { customer_ids, user_ids };
}

const sweptWithinMs = 240_000;
const sweptWithLakeMs = 240_000;

/** Waits until the erasure is swept. Then its people must not be readable, and the suppression may be lifted. */
async function follow(round: Round, random: Random, plan: Plan, erasureId: string): Promise<void> {
  const path = `/v1/erasures/${erasureId}`;
  const deadlineMs = performance.now() + (round.hasLake ? sweptWithLakeMs : sweptWithinMs);
  for (;;) {
    const { body } = await round.askUntilAnswered(random, 'GET', path);
    const isSwept = body.state === 'swept' || body.state === 'done';
    if (isSwept && body.lake !== 'pending') break;
    if (performance.now() > deadlineMs) return round.violate('not swept', body);
    await sleep(200 + random.below(300));
  }
  const certificate = await round.askUntilAnswered(random, 'GET', `${path}/certificate`);
  if (certificate.status !== 200) round.violate('no certificate', certificate);
  for (const person of plan.people.slice(0, 3)) await expectNothing(round, random, person, 'swept');
  if (!plan.isLifted) return;
  await plan.other;
  await lift(round, random, plan, path);
}

async function lift(round: Round, random: Random, { people }: Plan, path: string): Promise<void> {
  const sentMs = performance.now();
  const { status, body } = await round.askUntilAnswered(random, 'DELETE', `${path}/suppression`);
  if (status !== 200) throw new Error(`lifting got ${status}: ${JSON.stringify(body)}`);
  for (const person of people) {
    if (person.fate !== 'lifted') continue;
    person.liftSentMs = sentMs;
    person.liftedMs = performance.now();
  }
}

/** Reads a person who is erased and not lifted. Nothing may be found. */
async function expectNothing(round: Round, random: Random, person: Person, when: string): Promise<void> {
  // A person of two erasures can only be lifted by the first of them, which does this before it lifts.
  if (person.liftSentMs < performance.now()) return;
  const reads = [
    `/user-interactions?user_id=${person.userId}`,
    ...person.customers.flatMap((id) => [`/v1/data/customers/${id}`, `/user-interactions?student_id=${id}`]),
  ];
  for (const path of reads) {
    const reply = await round.ask(random, 'GET', path);
    if (!reply || reply.status === 404) continue;
    const { interactions } = reply.body;
    if (reply.status !== 200 || !interactions || interactions.length > 0)
      round.violate(`readable ${when}`, {
        path,
        fate: person.fate,
        status: reply.status,
        first: interactions?.[0],
      });
  }
}
