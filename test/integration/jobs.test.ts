import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type JobKind, jobKind, type Step } from '../../src/jobs/job.ts';
import { Round } from '../../src/jobs/round.ts';
import { runJobs, takeStep } from '../../src/jobs/run-jobs.ts';
import { databaseTime } from '../../src/postgres/transactions.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

let test: TestApp;
let count = 0;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const newOrganisation = async () => (await test.organisation(`jobs-${++count}`)).organisationId;

/** Makes a kind of work with these steps, for one organisation, as long as `isWanted` returns true. */
function kindOf(
  organisationId: string,
  steps: Readonly<Record<string, Step<string>>>,
  isWanted: () => boolean = () => true,
): JobKind {
  const [first] = Object.keys(steps) as [string];
  const find = async () => (isWanted() ? [organisationId] : []);
  return jobKind<string>({ name: `test ${count}`, first, find, steps });
}

/** Steps that end with a `call` that is held until `release` is called, if it was armed. */
function heldSteps() {
  let armed = false;
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const steps: Readonly<Record<string, Step<string>>> = {
    begin: { work: async () => ({ next: { step: 'look' } }) },
    look: {
      async call() {
        if (armed) {
          armed = false;
          reached.resolve();
          await released.promise;
        }
        return { step: 'delete' };
      },
    },
    delete: { work: async () => ({ next: 'ended' }) },
  };
  const arm = () => {
    armed = true;
  };
  return { steps, arm, reached: reached.promise, release: released.resolve };
}

it('a leader that stalls in a step cannot take part in a later job of the same organisation', async () => {
  const organisationId = await newOrganisation();
  const { steps, arm, reached, release } = heldSteps();
  const kind = kindOf(organisationId, steps);
  const step = () => takeStep(test.pool, kind, organisationId);
  const place = async () =>
    (await test.pool.query('select step from jobs where organisation_id = $1', [organisationId])).rows;
  await step();
  arm();
  const stalled = step();
  await reached;
  // The successor ends this job, and begins the next one, which arrives at the step in which the first leader stalls.
  await step();
  await step();
  expect(await place()).toEqual([]);
  await step();
  expect(await place()).toEqual([{ step: 'look' }]);
  release();
  await stalled;
  expect(await place()).toEqual([{ step: 'look' }]);
});

it('work that arrives during a round is taken up in the same round, although other work is never done', async () => {
  const [busy, waiting] = [await newOrganisation(), await newOrganisation()];
  const endless = kindOf(busy, {
    work: { work: async () => ({ next: { step: 'work' } }) },
  });
  const stopping = new AbortController();
  let isWanted = false;
  let isEnded = false;
  const late = {
    ...kindOf(
      waiting,
      {
        work: {
          async work() {
            isWanted = false;
            isEnded = true;
            stopping.abort();
            return { next: 'ended' };
          },
        },
      },
      () => isWanted,
    ),
    name: 'late',
  };
  const round = runJobs(test.pool, [endless, late], new Round(120_000, stopping.signal));
  await sleep(500);
  isWanted = true;
  await round;
  expect(isEnded).toBe(true);
});

it('a job of many short steps does not wait for as many long ones', async () => {
  const [slow, quick] = [await newOrganisation(), await newOrganisation()];
  let [longSteps, steps] = [0, 0];
  const long = {
    ...kindOf(slow, {
      work: {
        async work() {
          longSteps++;
          await sleep(400);
          return { next: { step: 'work' } };
        },
      },
    }),
    name: 'long',
  };
  const stopping = new AbortController();
  const short = kindOf(
    quick,
    {
      work: {
        async work() {
          if (++steps < 30) return { next: { step: 'work' } };
          stopping.abort();
          return { next: 'ended' };
        },
      },
    },
    () => steps < 30,
  );
  await runJobs(test.pool, [long, short], new Round(120_000, stopping.signal));
  expect(steps).toBe(30);
  expect(longSteps).toBeLessThan(20);
});

it('a job that fails is taken up again after a pause, and the others continue', async () => {
  const [failing, working] = [await newOrganisation(), await newOrganisation()];
  let failures = 0;
  const bad = {
    ...kindOf(failing, {
      work: {
        async work() {
          failures++;
          throw new Error('not now');
        },
      },
    }),
    name: 'bad',
  };
  let isDone = false;
  const good = kindOf(
    working,
    {
      work: {
        async work() {
          isDone = true;
          return { next: 'ended' };
        },
      },
    },
    () => !isDone,
  );
  /** Returns how long the job pauses, counted from before its last step, and ends or prolongs the pause. */
  const pauseFrom = async (before: Date, notBefore: 'now' | 'in an hour') => {
    const { rows } = await test.pool.query<{ pause_ms: number }>(
      `update jobs set not_before = now() + $3::interval from jobs o where jobs.organisation_id = $1
         and o.organisation_id = $1 returning (extract(epoch from o.not_before - $2::timestamptz) * 1000)::float8 as pause_ms`,
      [failing, before, notBefore === 'now' ? '0' : '1 hour'],
    );
    return rows[0]!.pause_ms;
  };
  let before = await databaseTime(test.pool);
  await expect(runJobs(test.pool, [bad, good], new Round())).rejects.toThrow('not now');
  expect({ failures, isDone }).toEqual({ failures: 1, isDone: true });
  expect(await pauseFrom(before, 'in an hour')).toBeGreaterThanOrEqual(1_000);
  await runJobs(test.pool, [bad], new Round());
  expect(failures).toBe(1);
  await pauseFrom(before, 'now');
  before = await databaseTime(test.pool);
  await runJobs(test.pool, [bad], new Round()).catch(() => {});
  expect(failures).toBe(2);
  expect(await pauseFrom(before, 'now')).toBeGreaterThanOrEqual(2_000);
});

it('work that is repeated after a conflict reads again', async () => {
  const organisationId = await newOrganisation();
  const seen: number[] = [];
  const kind = kindOf(organisationId, {
    work: {
      async work(client) {
        const { rows } = await client.query(
          'select suppressions_version as version from tenants where organisation_id = $1',
          [organisationId],
        );
        seen.push(rows[0].version);
        if (seen.length === 1) {
          await test.pool.query(
            'update tenants set suppressions_version = suppressions_version + 1 where organisation_id = $1',
            [organisationId],
          );
          throw Object.assign(new Error('conflict'), { code: '40001' });
        }
        return { next: 'ended' };
      },
    },
  });
  await takeStep(test.pool, kind, organisationId);
  expect(seen).toEqual([0, 1]);
});
