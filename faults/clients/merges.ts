import { type FailedRecord, IntakeError } from '../../client/src/index.ts';
import { many } from '../../test/support/new-records.ts';
import { idOf } from '../world/records.ts';
import { type ClientKind, libraryOf, type RunningClient, type Stage } from './client.ts';

/**
 * Several clients merge different fields of the same shops at the same time, without times of changes. So each field must always
 * have the value that its own client sent last, however often its requests are repeated, and whatever the others do.
 */
export const merges: ClientKind = {
  name: 'merges of different fields',
  promises: 'I1 I2 I4',
  perOrganisation: 1,
  start: (stage) => new Merges(stage),
};

const shops = 60;

type Change = Readonly<Record<string, unknown>> & { readonly shop_id: string };

class Merges implements RunningClient {
  readonly #stage: Stage;
  readonly #ids: readonly string[];
  readonly #writers: readonly Writer[];

  constructor(stage: Stage) {
    const { organisation, random } = stage;
    this.#stage = stage;
    this.#ids = many(shops, (index) => idOf(organisation.seed, 'merged shops', index));
    for (const id of this.#ids) organisation.merged.add(id);
    const oneOf = (values: readonly (boolean | null)[]) => () => random.pick(values);
    let version = 0;
    this.#writers = [
      // The required fields come from one client, which therefore creates the shops again if a restore has lost them.
      new Writer(stage, () => ({
        name: `${organisation.slug} merged ${++version}`,
        region: random.pick(['GB', 'DE']),
      })),
      new Writer(stage, () => ({ is_public: oneOf([true, false, null])() })),
      new Writer(stage, () => ({ is_deleted: oneOf([true, false, null])() })),
    ];
  }

  async run(): Promise<void> {
    const [creator, ...others] = this.#writers as [Writer, ...Writer[]];
    await creator.send(this.#ids);
    await Promise.all([creator, ...others].map((writer) => this.#writeOn(writer)));
  }

  async #writeOn(writer: Writer): Promise<void> {
    const { random, count } = this.#stage;
    while (!this.#stage.isOver) {
      // The same shop may be in a request several times.
      await writer.send(
        many(1 + random.below(random.chance(0.2) ? 1_500 : 40), () => random.pick(this.#ids)),
      );
      count('merges');
    }
  }

  async check(): Promise<void> {
    const { world, organisation, violate } = this.#stage;
    const rows = await world.database.query<Change>(
      `select shop_id::text, name, region, is_public, is_deleted from shops
       where organisation_id = $1 and shop_id = any($2::uuid[])`,
      [organisation.id, this.#ids],
    );
    const stored = new Map(rows.map((row) => [row.shop_id, row]));
    for (const writer of this.#writers)
      for (const [id, expected] of writer.known()) {
        const found = stored.get(id);
        if (Object.entries(expected).some(([field, value]) => found?.[field] !== value))
          violate('I1: a merged field differs from what its only client sent last', { id, expected, found });
      }
  }
}

/** The only client that sends these fields. */
class Writer {
  readonly #stage: Stage;
  readonly #draw: () => object;
  #known = new Map<string, object>();
  #rewinds = 0;

  constructor(stage: Stage, draw: () => object) {
    this.#stage = stage;
    this.#draw = draw;
  }

  /** What must be stored, as far as nothing was lost by a restore or was left unanswered since. */
  known(): ReadonlyMap<string, object> {
    return this.#rewinds === this.#stage.organisation.rewinds ? this.#known : new Map();
  }

  async send(ids: readonly string[]): Promise<void> {
    const { organisation, random } = this.#stage;
    const { rewinds } = organisation;
    if (rewinds > this.#rewinds) this.#known.clear();
    this.#rewinds = rewinds;
    const changes = ids.map((shop_id) => ({ shop_id, ...this.#draw() }));
    for (const id of ids) this.#known.delete(id);
    try {
      const upload = libraryOf(this.#stage).upload('shops', changes, { mode: 'merge', name: random.hex(12) });
      const { failed } = await upload.finish();
      if (organisation.rewinds > rewinds) return;
      const isFailed = new Set(failed.map(({ index }) => index));
      for (const [index, { shop_id, ...fields }] of changes.entries()) {
        // Null means false for this field.
        const values = Object.entries(fields).map(([field, value]) => [
          field,
          field === 'is_deleted' ? (value ?? false) : value,
        ]);
        if (isFailed.has(index)) this.#known.delete(shop_id);
        else this.#known.set(shop_id, Object.fromEntries(values));
      }
      for (const one of failed) this.#expectFailure(one);
    } catch (error) {
      const isTemporary = error instanceof IntakeError && (error.status === null || error.status >= 500);
      const kind = isTemporary ? 'I7: a merge was never answered' : 'I8: a merge failed for good';
      this.#stage.violate(kind, { error: String(error) });
    }
  }

  /** A shop that a restore has lost lacks its required fields until it is created again. */
  #expectFailure({ record, problems }: FailedRecord<object>): void {
    const codes = problems.map(({ code }) => code);
    const isLost = this.#rewinds > 0 && codes.every((code) => code === 'required');
    const isOpen = codes.every((code) => code === 'not_stored' || code === 'outcome_unknown');
    if (!isLost && !isOpen) this.#stage.violate('I5: a merge of a valid record failed', { record, problems });
  }
}
