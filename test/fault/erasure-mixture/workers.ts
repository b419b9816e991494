import { setTimeout as sleep } from 'node:timers/promises';
import { many } from '../../support/new-records.ts';
import type { Values, Write } from './oracle.ts';
import type { Person } from './people.ts';
import type { Random } from './random.ts';
import { browserOrigin, type Reply, type Round } from './round.ts';

/** The workers of a round. Each of them sends requests about random people until the round is over. */
export function startWorkers(round: Round, random: Random): Promise<unknown> {
  const work = [
    ...many(6, () => uploadRecords),
    ...many(6, () => recordInteraction),
    ...many(3, () => recordBatch),
    ...many(3, () => recordFromBrowser),
    ...many(2, () => replayRejections),
  ];
  return Promise.all(
    work.map(async (step) => {
      const own = random.fork();
      while (!round.isOver) {
        await step(round, own);
        await sleep(10 + own.below(60));
      }
    }),
  );
}

/** Stores records of many people, before anything goes wrong. */
export async function fillTables(round: Round, random: Random): Promise<void> {
  const { people } = round.world;
  const customers = people.flatMap((person) =>
    person.customers.map((id) => makeCustomer(round, random, person, id)),
  );
  const inParts = async (target: Target, made: readonly Made[]) => {
    for (let from = 0; from < made.length; from += 500)
      await send(round, random, target, made.slice(from, from + 500));
  };
  await inParts({ path: '/v1/data/customers', isBatch: true }, customers);
  const missing = round.writes.filter(({ outcome }) => outcome !== 'stored');
  if (missing.length > 0) throw new Error(`${missing.length} customers could not be stored`);
  const made = people.map(() => makeTransaction(round, random));
  await inParts({ path: '/v1/data/transactions', isBatch: true }, made);
  const favourites = people.map(() => makeFavourite(round, random));
  await inParts({ path: '/v1/data/student-favourites', isBatch: true }, favourites);
  const interactions = people.map(() => makeInteraction(round, random));
  await inParts({ path: paths.batch, isBatch: true }, interactions);
}

/** A record with what the oracle has to know about it. */
interface Made {
  readonly record: object;
  readonly write: Omit<Write, 'startedMs' | 'endedMs' | 'outcome' | 'code'>;
}

/** Returns a student, who is erased in this round in half of the cases. */
function anyStudent({ world }: Round, random: Random): Person {
  return random.pick(world.students[random.chance(0.5) ? 'erased' : 'kept']);
}

const timeOf = (version: number) => new Date(Date.UTC(2026, 0, 1) + version * 1_000).toISOString();

function makeCustomer(round: Round, random: Random, person: Person, customerId: string): Made {
  const version = round.nextVersion();
  const isBroken = round.writes.length > 0 && random.chance(0.05);
  const values: Values = {
    customer_id: customerId,
    user_id: person.userId,
    region: 'GB',
    gender: `version ${version}`,
  };
  const record = {
    ...values,
    customer_id: random.chance(0.1) ? customerId.toUpperCase() : customerId,
    ...(isBroken && { region: 'nowhere' }),
    updated: timeOf(version),
  };
  const write = {
    table: 'customers',
    id: customerId,
    version,
    values,
    student: person,
    user: null,
    isBroken,
  } as const;
  return { record, write };
}

function makeTransaction(round: Round, random: Random, earlier?: Made['write']): Made {
  const person = earlier ? (earlier.student as Person) : anyStudent(round, random);
  const version = round.nextVersion();
  const roll = earlier ? 1 : random.next();
  const id = earlier?.id ?? random.uuid();
  const values: Values = {
    shop_id: earlier?.values.shop_id ?? random.pick(roll < 0.1 ? round.world.laterShops : round.world.shops),
    student_id: earlier?.values.student_id ?? random.pick(person.customers),
    region: 'GB',
    amount: String((100 + random.below(9_900)) / 100),
    discount_name: `version ${version}`,
  };
  const isInvalid = roll > 0.1 && roll < 0.15;
  const record = {
    ...values,
    transaction_id: id,
    savings: 0,
    amount: Number(values.amount),
    ...(isInvalid && { region: 'nowhere' }),
    updated: timeOf(version),
  };
  const isBroken = roll < 0.15;
  return {
    record,
    write: { table: 'transactions', id, version, values, student: person, user: null, isBroken },
  };
}

function makeFavourite(round: Round, random: Random): Made {
  const person = anyStudent(round, random);
  const version = round.nextVersion();
  const id = random.uuid();
  const isBroken = random.chance(0.1);
  const values: Values = {
    student_id: random.pick(person.customers),
    shop_id: random.pick(isBroken ? round.world.laterShops : round.world.shops),
  };
  const record = { ...values, student_favourite_id: id, updated: timeOf(version) };
  return {
    record,
    write: { table: 'student_favourites', id, version, values, student: person, user: null, isBroken },
  };
}

/** Makes an interaction of a student or a stranger, on their own or on somebody else's computer. */
function makeInteraction(round: Round, random: Random): Made {
  const { strangers, shops, laterShops } = round.world;
  const student = random.chance(0.6) ? anyStudent(round, random) : null;
  const roll = random.next();
  const own = student ?? anyStudent(round, random);
  let user: Person | null = null;
  if (roll < 0.4) user = own;
  else if (roll < 0.8) user = random.pick(strangers);
  else if (roll < 0.85) user = anyStudent(round, random);
  const id = random.uuid();
  const isBroken = random.chance(0.05);
  const values: Values = {
    interaction_type: random.pick(['SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE']),
    user_id: user?.userId ?? null,
    student_id: student ? random.pick(student.customers) : null,
    item_id: random.pick(isBroken ? laterShops : shops),
    city: random.pick(['Leeds', 'York', null]),
    country: random.pick(['GB', null]),
    platform: random.pick(['WEB', 'IOS', null]),
  };
  const sent = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
  const record = {
    ...sent,
    ...(user && user.customers.length > 0 && random.chance(0.3) && { user_id: random.mixCase(user.userId) }),
    item_type: 'SHOP',
    event_timestamp: 1_760_000_000 + random.below(1_000_000),
    recommendation_id: id,
  };
  return { record, write: { table: 'interactions', id, version: 1, values, student, user, isBroken } };
}

/** Returns the headers of a request. Some have an Idempotency-Key, and some of these contain a person's id. */
function keyHeaders(round: Round, random: Random): Record<string, string> {
  if (!random.chance(0.3)) return {};
  const id = random.chance(0.5) ? random.pick(random.pick(round.world.people).ids) : 'nightly';
  return { 'idempotency-key': `${id} ${random.hex(12)}` };
}

async function uploadRecords(round: Round, random: Random): Promise<void> {
  const count = 1 + random.below(15);
  const roll = random.next();
  if (roll < 0.05) return uploadShop(round, random);
  if (roll < 0.1) return uploadTwin(round, random);
  if (roll < 0.4) {
    const people = new Set(many(count, () => anyStudent(round, random)));
    const made = [...people].map((one) => makeCustomer(round, random, one, random.pick(one.customers)));
    return void (await sendRecords(round, random, 'customers', made));
  }
  if (roll < 0.6) {
    const made = many(count, () => makeFavourite(round, random));
    return void (await sendRecords(round, random, 'student-favourites', made));
  }
  const made = many(count, () => makeTransaction(round, random));
  await sendRecords(round, random, 'transactions', made);
  if (random.chance(0.7)) return;
  // Send newer versions of the same transactions.
  const again = made.filter(({ write }) => !write.isBroken);
  if (again.length === 0) return;
  const newer = again.map(({ write }) => makeTransaction(round, random, write));
  await sendRecords(round, random, 'transactions', newer);
}

/** Uploads shops. They belong to nobody, but their Idempotency-Key may contain a person's id. */
async function uploadShop(round: Round, random: Random): Promise<void> {
  const ids = round.areShopsComplete ? round.world.laterShops : [random.pick(round.world.shops)];
  const records = ids.map((shop_id) => ({ shop_id, name: `Shop ${random.hex(4)}`, region: 'GB' }));
  await round.ask(random, 'POST', '/v1/data/shops', {
    body: { records },
    headers: keyHeaders(round, random),
  });
}

/** Uploads another customer with the user of an existing one. It is the same person, and may be erased meanwhile. */
async function uploadTwin(round: Round, random: Random): Promise<void> {
  const person = anyStudent(round, random);
  if (person.fate.startsWith('lifted')) return;
  const customerId = random.uuid();
  const made = makeCustomer(round, random, person, customerId);
  const [write] = await sendRecords(round, random, 'customers', [made]);
  if (write?.outcome === 'stored') person.customers.push(customerId);
}

const paths = { batch: '/user-interactions/batch', single: '/user-interactions' };

async function recordBatch(round: Round, random: Random): Promise<void> {
  const made = many(1 + random.below(15), () => makeInteraction(round, random));
  await send(round, random, { path: paths.batch, isBatch: true }, made);
}

async function recordInteraction(round: Round, random: Random): Promise<void> {
  await send(round, random, { path: paths.single, isBatch: false }, [makeInteraction(round, random)]);
}

async function recordFromBrowser(round: Round, random: Random): Promise<void> {
  const key = round.keys.browser;
  const made = makeInteraction(round, random);
  if (random.chance(0.3)) await send(round, random, { path: paths.batch, isBatch: true, key }, [made]);
  else await send(round, random, { path: paths.single, isBatch: false, key }, [made]);
}

async function replayRejections(round: Round, random: Random): Promise<void> {
  const type = random.pick(['transactions', 'student-favourites', 'interactions', 'customers']);
  await round.ask(random, 'POST', `/v1/rejections/replay?type=${type}`);
  await sleep(200);
}

function sendRecords(round: Round, random: Random, type: string, made: readonly Made[]): Promise<Write[]> {
  return send(round, random, { path: `/v1/data/${type}`, isBatch: true }, made);
}

interface Target {
  readonly path: string;
  readonly isBatch: boolean;
  readonly key?: string;
}

/** Sends records, with retries if they have an Idempotency-Key, and tells the oracle. */
async function send(
  round: Round,
  random: Random,
  { path, isBatch, key }: Target,
  made: readonly Made[],
): Promise<Write[]> {
  const headers = keyHeaders(round, random);
  const body = isBatch ? { records: made.map(({ record }) => record) } : (made[0] as Made).record;
  const writes = made.map(({ write }): Write => {
    const sent = { startedMs: performance.now(), endedMs: Number.POSITIVE_INFINITY };
    return { ...write, ...sent, outcome: 'unknown', code: null };
  });
  round.writes.push(...writes);
  const attempts = 'idempotency-key' in headers ? 5 : 1;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const reply = await round.ask(random, 'POST', path, {
      body,
      headers: { ...headers, ...(key && { origin: browserOrigin }) },
      ...(key && { key }),
    });
    if (reply) {
      noteReply(round, writes, reply, attempt > 1);
      break;
    }
    await sleep(150);
  }
  return writes;
}

function noteReply(round: Round, writes: readonly Write[], { status, body }: Reply, isRetry: boolean): void {
  const endedMs = performance.now();
  const failed = new Map<number, string>();
  const stale = new Set<number>();
  if (body?.batches) {
    const { data } = body.batches[0];
    for (const { index, code } of data?.errors ?? []) failed.set(index, code);
    for (const index of data?.stale ?? []) stale.add(index);
    if (!data) return;
  } else if (status === 400 && body?.details) failed.set(0, body.details[0].code);
  else if (status !== 201 && status !== 202 && status !== 200) {
    if (status !== 422 || writes.every(({ student, user }) => !student?.isErased && !user?.isErased))
      round.violate('unexpected answer', { status, body });
    return;
  }
  for (const [index, write] of writes.entries()) {
    write.endedMs = endedMs;
    const code = failed.get(index);
    if (code === 'not_stored' || code === 'outcome_unknown') continue;
    write.code = code ?? null;
    if (stale.has(index)) write.outcome = 'unknown';
    else if (code === undefined) write.outcome = status === 202 ? 'accepted' : 'stored';
    // An earlier attempt may have been stored before the person was erased.
    else if (code === 'erased') write.outcome = isRetry ? 'unknown' : 'refused';
    else write.outcome = 'rejected';
  }
}
