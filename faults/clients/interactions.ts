import { IntakeError } from '../../client/src/index.ts';
import { judgeAnswer, type Outcome, type Write } from '../../test/fault/erasure-mixture/oracle.ts';
import type { Random } from '../../test/fault/erasure-mixture/random.ts';
import { many } from '../../test/support/new-records.ts';
import type { Sent } from '../checker/ledger.ts';
import { comparedTable, textsOf } from '../checker/stored-text.ts';
import type { Organisation } from '../world/organisation.ts';
import { baseOf, eventsMs, idOf } from '../world/records.ts';
import { ask, type ClientKind, libraryOf, type RunningClient, type Stage } from './client.ts';

/** Records interactions as they happen through the library, which may send several in one request. */
export const interactions: ClientKind = {
  name: 'interactions through the library',
  promises: 'I1 I3 I4 I5',
  perOrganisation: 1,
  start: (stage) => ({ run: () => recordThroughLibrary(stage) }),
};

/** Records single interactions with keys of its own, and repeats many of them although they were answered. */
export const keyedInteractions: ClientKind = {
  name: 'single interactions with keys',
  promises: 'I1 I4 I5',
  perOrganisation: 3,
  start: (stage) => new Keyed(stage),
};

export interface MadeInteraction {
  readonly record: Readonly<Record<string, unknown>>;
  readonly sent: Sent;
  readonly isDangling: boolean;
  readonly isInvalid: boolean;
}

const items = { SHOP: 'shops', TAG: 'tags', OFFER: 'offers', KEYWORD: 'keywords' } as const;

export function makeInteraction(organisation: Organisation, random: Random): MadeInteraction {
  const { seed, people } = organisation;
  const item_type = random.pick(Object.keys(items) as (keyof typeof items)[]);
  const isDangling = random.chance(0.02);
  const isInvalid = !isDangling && random.chance(0.02);
  const student = random.chance(0.7) ? random.pick(people.slice(0, baseOf('customers'))) : null;
  const id = random.uuid();
  const target = items[item_type];
  const record: Record<string, unknown> = {
    interaction_type: random.pick(['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE']),
    user_id: student?.userId ?? null,
    student_id: student?.customers[0] ?? null,
    item_type,
    item_id: isDangling
      ? idOf(seed, 'nothing', random.below(99))
      : idOf(seed, target, random.below(baseOf(target))),
    city: random.pick(['Leeds', 'Zürich', '', null]),
    country: organisation.slug,
    platform: random.pick(['WEB', 'IOS', null]),
    event_timestamp: eventsMs / 1_000 + random.below(1_000_000),
    source: random.pick(['SERVICE', null]),
    recommendation_id: id,
  };
  const values = textsOf(comparedTable('interactions'), record);
  if (isInvalid) record.platform = 'TELEPHONE';
  const sent: Sent = {
    ...{ table: 'interactions', id, version: 1, values, student, user: student },
    isBroken: isDangling || isInvalid,
  };
  return { record, sent, isDangling, isInvalid };
}

async function recordThroughLibrary(stage: Stage): Promise<void> {
  const { organisation, random } = stage;
  while (!stage.isOver) {
    const intake = libraryOf(stage);
    const made = many(1 + random.below(120), () => makeInteraction(organisation, random));
    const writes = organisation.ledger.begin(made.map(({ sent }) => sent));
    const recorded = made.map(async ({ record }, at) => {
      if (random.chance(0.3)) await Promise.resolve();
      const write = writes[at] as Write;
      try {
        const { interaction_id } = await intake.record(record as never);
        if (!interaction_id) stage.violate('I5: no id for an interaction', { record });
        settleInteraction(stage, made[at] as MadeInteraction, write, 'stored');
      } catch (error) {
        if (!(error instanceof IntakeError)) throw error;
        const codes = error.details.map(({ code }) => code as string);
        const isUnknown = codes.some((code) => code === 'not_stored' || code === 'outcome_unknown');
        if (error.code === 'invalid_request' && !isUnknown)
          settleInteraction(stage, made[at] as MadeInteraction, write, 'rejected', codes[0]);
        else if (error.status !== null && error.status < 500 && error.status !== 429)
          stage.violate('I8: an interaction failed for good', { error: String(error), code: error.code });
      }
    });
    await Promise.all(recorded);
    await intake.close();
    stage.count('bursts of interactions');
  }
}

/** Notes the answer and checks that it suits the interaction. */
export function settleInteraction(
  { organisation, violate }: Stage,
  made: MadeInteraction,
  write: Write,
  outcome: Outcome,
  code: string | null = null,
): void {
  const isErased = code === 'erased' || code === 'reference_not_found';
  const mayFail = made.sent.isBroken || (isErased && (write.student ?? write.user)?.isErased);
  if (outcome === 'rejected' && !mayFail)
    violate('I5: a valid interaction failed', { record: made.record, code });
  if (outcome === 'stored' && made.isDangling)
    violate('I3: stored with a missing reference', { record: made.record });
  if (outcome === 'stored' && made.isInvalid)
    violate('I8: an invalid interaction was stored', { record: made.record });
  // An attempt that was repeated may have been stored before the person was erased.
  if (code === 'erased') organisation.ledger.settle(write, 'unknown', code);
  else
    organisation.ledger.settle(write, outcome === 'rejected' && made.isInvalid ? 'refused' : outcome, code);
  const wrong = outcome === 'stored' && judgeAnswer(write);
  if (wrong) violate(`I10: ${wrong}`, { record: made.record });
}

class Keyed implements RunningClient {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { organisation, random } = this.#stage;
    while (!this.#stage.isOver) {
      const made = makeInteraction(organisation, random);
      const [write] = organisation.ledger.begin([made.sent]) as [Write];
      const key = `${organisation.slug} ${random.uuid()}`;
      const { rewinds } = organisation;
      const first = await this.#send(made, write, key);
      if (!first || !random.chance(0.4)) continue;
      const again = await this.#send(made, write, key);
      if (again && first !== again && rewinds === organisation.rewinds)
        this.#stage.violate('I4: a repeated interaction got another id', { first, again });
    }
  }

  /** Sends it until it is answered. Returns its id if it is stored. */
  async #send(made: MadeInteraction, write: Write, key: string): Promise<string | null> {
    const headers = { 'idempotency-key': key };
    for (let attempt = 0; attempt < 60; attempt++) {
      const answer = await ask(this.#stage, 'POST', '/user-interactions', { body: made.record, headers });
      if (!answer) {
        await new Promise((resolve) => setTimeout(resolve, 200 + this.#stage.random.below(800)));
        continue;
      }
      const { status, body } = answer;
      this.#stage.count('single interactions');
      if (status === 201) {
        settleInteraction(this.#stage, made, write, 'stored');
        return body.interaction_id;
      }
      if (status === 400)
        settleInteraction(this.#stage, made, write, 'rejected', body.details?.[0]?.code ?? null);
      else if (status < 500 && status !== 408) this.#stage.violate('I8: unexpected status', { status, body });
      return null;
    }
    return null;
  }
}
