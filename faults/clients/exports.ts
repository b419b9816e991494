import { type FailedRecord, IntakeError, type UploadResult } from '../../client/src/index.ts';
import { type ResourceType, resources } from '../../src/registry/resources.ts';
import { judgeAnswer, type Write } from '../../test/fault/erasure-mixture/oracle.ts';
import { many } from '../../test/support/new-records.ts';
import { baseOf, type Made, makeRecord, poolSizes } from '../world/records.ts';
import { type ClientKind, libraryOf, type RunningClient, type Stage } from './client.ts';

/** Uploads exports of all types through the library. Exports of several clients contain the same ids. */
export const exports: ClientKind = {
  name: 'exports through the library',
  promises: 'I1 I2 I4 I5 I8 I11',
  perOrganisation: 2,
  start: (stage) => new Exports(stage),
};

const types = Object.keys(resources) as ResourceType[];

class Exports implements RunningClient {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { random } = this.#stage;
    for (let name = 0; !this.#stage.isOver; name++) {
      const type = random.chance(0.4) ? 'transactions' : random.pick(types);
      // Many uploads are a single batch, and some are several.
      const size = random.chance(0.5) ? 1_000 + random.below(4_000) : 1 + random.below(400);
      const count = Math.min(size, type === 'courses' ? 900 : 5_000, poolSizes[type] * 3);
      const made = many(count, () =>
        makeRecord(this.#stage.organisation, type, random, { index: random.below(poolSizes[type]) }),
      );
      await this.#upload(type, made, `${random.hex(12)} ${name}`);
    }
  }

  async #upload(type: ResourceType, made: readonly Made[], name: string): Promise<void> {
    const { organisation, random, count } = this.#stage;
    const intake = libraryOf(this.#stage);
    const writes = organisation.ledger.begin(made.map(({ sent }) => sent));
    const records = made.map(({ record }) => record) as never[];
    const send = async (): Promise<UploadResult<object> | null> => {
      try {
        const failed: FailedRecord<object>[] = [];
        let [requestIds, counts]: [string[], UploadResult<object>['counts'] | undefined] = [[], undefined];
        for await (const step of intake.upload(type, records, { name })) {
          requestIds = [...requestIds, ...step.requestIds];
          counts = step.counts;
          failed.push(...step.failed);
        }
        if (!counts) throw new Error('an upload without an answer');
        const [requestId] = requestIds;
        const result = { counts, failed };
        const { unknown, ...answered } = counts;
        if (
          requestId &&
          requestIds.length === 1 &&
          unknown === 0 &&
          !hasUnknown(result) &&
          random.chance(0.3)
        )
          organisation.receipts.set(requestId, answered);
        return result;
      } catch (error) {
        this.#expectAnswer(error);
        return null;
      }
    };
    const result = await send();
    count('uploads');
    if (!result) return;
    if (hasUnknown(result)) this.#stage.violate('I7: an upload was never stored', { counts: result.counts });
    this.#settle(made, writes, result);
    if (!random.chance(0.15)) return;
    const { rewinds } = organisation;
    const again = await send();
    if (rewinds < organisation.rewinds) return;
    if (again && !hasUnknown(result) && JSON.stringify(again.counts) !== JSON.stringify(result.counts))
      this.#stage.violate('I4: a repeated upload got other counts', {
        first: result.counts,
        again: again.counts,
      });
  }

  #settle(made: readonly Made[], writes: readonly Write[], { counts, failed }: UploadResult<object>): void {
    const { violate, organisation } = this.#stage;
    const sum = counts.created + counts.updated + counts.unchanged + counts.stale + counts.failed;
    if (counts.received !== made.length || sum !== made.length || counts.failed !== failed.length)
      violate('I5: counts do not add up', { counts, sent: made.length, failed: failed.length });
    const failures = new Map(failed.map(({ index, problems }) => [index, problems]));
    for (const [index, write] of writes.entries()) {
      const one = made[index] as Made;
      const [problem] = failures.get(index) ?? [];
      const code = problem?.code;
      if (code === 'not_stored' || code === 'outcome_unknown') continue;
      // An attempt that the library repeated may have been stored before the person was erased.
      if (code === 'erased') organisation.ledger.settle(write, 'unknown', code);
      else if (code) organisation.ledger.settle(write, one.invalid === null ? 'rejected' : 'refused', code);
      else organisation.ledger.settle(write, 'stored');
      this.#expectOutcome(one, write, problem);
    }
  }

  #expectOutcome(
    made: Made,
    write: Write,
    problem?: { readonly field: string | null; readonly code: string },
  ) {
    const { violate } = this.#stage;
    if (!problem && judgeAnswer(write))
      violate(`I10: ${judgeAnswer(write)}`, { table: write.table, id: write.id });
    const detail = { table: write.table, id: write.id, record: made.record, problem };
    if (problem?.code === 'erased') {
      if (!write.student?.isErased) violate('I10: refused as erased, but nobody was erased', detail);
    } else if (made.invalid !== null) {
      if (!problem) violate('I8: an invalid record was stored', detail);
      else if (problem.field !== made.invalid && !made.isDangling && !made.mayDangle)
        violate('I8: another field was named', { ...detail, invalid: made.invalid });
    } else if (made.isDangling && !problem) violate('I3: stored with a missing reference', detail);
    else if (problem && !made.isDangling && !made.mayDangle && !write.student?.isErased)
      violate('I5: a valid record failed', detail);
  }

  /** No fault lasts as long as the library repeats a request. */
  #expectAnswer(error: unknown): void {
    const isTemporary = error instanceof IntakeError && (error.status === null || error.status >= 500);
    const kind = isTemporary ? 'I7: an upload was never answered' : 'I8: an upload failed for good';
    this.#stage.violate(kind, { error: String(error) });
  }
}

const hasUnknown = ({ failed }: UploadResult<object>) =>
  failed.some(({ problems }) =>
    problems.some(({ code }) => code === 'not_stored' || code === 'outcome_unknown'),
  );

/** Uploads everything that other records refer to, before anything goes wrong. */
export async function uploadBase(stage: Stage): Promise<void> {
  const intake = libraryOf(stage);
  const order: ResourceType[] = types.toSorted(
    (one, other) => Number(hasReferences(one)) - Number(hasReferences(other)),
  );
  for (const type of order) {
    const made = many(baseOf(type), (index) =>
      makeRecord(stage.organisation, type, stage.random, { index, isSound: true }),
    );
    const writes = stage.organisation.ledger.begin(made.map(({ sent }) => sent));
    const records = made.map(({ record }) => record) as never[];
    const { counts } = await intake.upload(type, records).finish();
    if (counts.created !== made.length) throw new Error(`base ${type}: ${JSON.stringify(counts)}`);
    for (const write of writes) stage.organisation.ledger.settle(write, 'stored');
  }
}

const hasReferences = (type: ResourceType) =>
  Object.values(resources[type].fields).some((field) => 'references' in field);
