import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { numberForAll } from '../../src/changes/change-retention.ts';
import { readConfig } from '../../src/config.ts';
import { limits } from '../../src/limits.ts';
import { changeOrganisation, createOrganisation } from '../../src/operator/audited-actions.ts';
import { type Client, createPool, type Pool } from '../../src/postgres/pool.ts';
import { keepStep, ReportKeeper, reportLagMs } from '../../src/reports/keep-report.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import {
  countReport,
  forgetChanges,
  keeperConfig,
  newReportOrganisation,
} from '../support/report-organisation.ts';
import { untilPasses } from '../support/until-passes.ts';

/** Tests how maintenance keeps the reports: for which organisations, how much in each step, and how it handles failures. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const newOrganisation = (slug: string) => newReportOrganisation(test, slug);
const count = (organisationId: string) => countReport(test, organisationId);

const logConfig = { changesKeptDays: 7 };
const lagMs = () => reportLagMs(test.pool, logConfig);

const by = { actor: 'test' };
const setReport = (slug: string, recommendations_report: boolean) =>
  changeOrganisation(test.pool, by, slug, { recommendations_report });

it.each([
  { slug: 'aperture', isDropped: false, what: 'while interactions come' },
  { slug: 'vandelay', isDropped: true, what: 'while interactions come and are dropped from the log' },
])('a walk of the tables ends $what', async ({ slug, isDropped }) => {
  const one = await newOrganisation(slug);
  const stored = 10;
  for (let minute = 0; minute < stored; minute++) await one.touch(`2026-03-10T11:${10 + minute}:00Z`);
  await forgetChanges(test, one.organisationId);
  const touches = async (query?: string) => (await one.report(query)).total.recommendations.touches;
  const walked = () => touches('from=2026-03-10&to=2026-03-11');
  let rounds = 0;
  for (; (await walked()) < stored && rounds < 40; rounds++) {
    await one.touch('2026-03-11T11:30:00Z');
    if (isDropped) await forgetChanges(test, one.organisationId);
    else await numberForAll(test.pool);
    // The step reads two interactions.
    await keepStep(test.pool, one.organisationId, 1);
  }
  expect(rounds).toBeLessThan(40);
  await count(one.organisationId);
  expect(await touches()).toBe(stored + rounds);
  expect((await one.report()).as_of).not.toBeNull();
});

it('a report that is off is 409 and not counted; once it is on, everything stored is counted', async () => {
  const created = await createOrganisation(test.pool, by, 'plain', 'Plain');
  expect(created?.recommendations_report).toBe(false);
  const acme = await newOrganisation('cyberdyne');
  await setReport('cyberdyne', false);
  const counted = async () => {
    await numberForAll(test.pool);
    await new ReportKeeper(test.pool, keeperConfig).run();
    const { rows } = await test.pool.query('select from report_interactions where organisation_id = $1', [
      acme.organisationId,
    ]);
    return rows.length;
  };
  await acme.touch('2026-03-10T11:30:00Z');
  expect(await counted()).toBe(0);
  const refused = await acme.askReport();
  expect(refused.statusCode).toBe(409);
  expect(refused.json()).toMatchObject({
    code: 'report_off',
    message: expect.stringContaining('intake-server organisations set-report <slug> on'),
  });
  // The first day is dropped from the log before the report is enabled.
  await forgetChanges(test, acme.organisationId);
  await setReport('cyberdyne', true);
  expect((await acme.report()).as_of).toBeNull();
  await expect.poll(counted).toBe(1);
  await setReport('cyberdyne', false);
  await acme.touch('2026-03-11T11:30:00Z');
  expect(await counted()).toBe(1);
  expect((await acme.askReport()).statusCode).toBe(409);
  await setReport('cyberdyne', true);
  await expect.poll(counted).toBe(2);
  await count(acme.organisationId);
  expect(await acme.report()).toMatchObject({
    total: { recommendations: { touches: 2 } },
    as_of: expect.any(String),
  });
});

it('the lag is the age of the oldest uncounted change, of reports that are on', async () => {
  const one = await newOrganisation('monarch');
  const lagOnceCounted = async () => {
    await numberForAll(test.pool);
    await new ReportKeeper(test.pool, keeperConfig).run();
    return lagMs();
  };
  await expect.poll(lagOnceCounted).toBe(0);
  await one.touch('2026-03-10T11:30:00Z');
  await numberForAll(test.pool);
  await expect.poll(() => lagMs()).toBeGreaterThan(100);
  await setReport('monarch', false);
  expect(await lagMs()).toBe(0);
  await setReport('monarch', true);
  expect(await lagMs()).toBeGreaterThan(100);
  await expect.poll(lagOnceCounted).toBe(0);
});

it('while a report walks the tables, its lag is the length of the log', async () => {
  const one = await newOrganisation('initech');
  await count(one.organisationId);
  await one.touch('2026-03-10T11:30:00Z');
  const keptMs = logConfig.changesKeptDays * 24 * 3_600_000;
  expect(await lagMs()).toBeLessThan(keptMs);
  await forgetChanges(test, one.organisationId);
  // The three states are: before the walk, walking interactions, and walking transactions.
  for (let step = 0; step < 3; step++) {
    expect((await one.report()).as_of).toBeNull();
    expect(await lagMs()).toBe(keptMs);
    await keepStep(test.pool, one.organisationId);
  }
  expect((await one.report()).as_of).not.toBeNull();
  expect(await lagMs()).toBeLessThan(keptMs);
});

it('PostgreSQL ends a statement that takes too long, so its locks do not outlive the step', async () => {
  const databaseTimeoutMs = 500;
  const one = await newOrganisation('tessier');
  await one.touch('2026-03-10T11:30:00Z');
  await numberForAll(test.pool);
  const pool = createPool(
    readConfig({ DATABASE_URL: test.databaseUrl, DATABASE_TIMEOUT_MS: String(databaseTimeoutMs) }),
    () => {},
  );
  // The timeout applies to opening the connection too, which takes longer on a busy machine.
  await untilPasses(() => pool.query('select'));
  const blocker = await test.pool.connect();
  try {
    await blocker.query('begin; lock table report_visits');
    const keeper = new ReportKeeper(pool, { databaseTimeoutMs }, () => () => false);
    await expect(keeper.run()).rejects.toThrow('statement timeout');
    const locked = test.pool.query(
      'select from report_progress where organisation_id = $1 for update nowait',
      [one.organisationId],
    );
    await expect(locked).resolves.toBeDefined();
  } finally {
    await blocker.query('rollback');
    blocker.release();
    await pool.end();
  }
  await count(one.organisationId);
});

// Citus does not allow such a trigger on a distributed table.
it.skipIf(inject('citus') !== null)(
  'a step ends in time, however many of its statements are slow',
  async () => {
    const one = await newOrganisation('yutani');
    await one.touch('2026-03-10T11:30:00Z');
    await numberForAll(test.pool);
    const tables = ['report_interactions', 'report_visits', 'report_sums'];
    await test.pool.query(`
    create function doze() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; end $$;
    ${tables.map((table) => `create trigger planted after insert on ${table} execute function doze();`).join('')}`);
    try {
      await expect(keepStep(test.pool, one.organisationId, 10, 1_200)).rejects.toThrow(
        /statement timeout|took longer than/,
      );
      await keepStep(test.pool, one.organisationId);
      expect((await one.report()).total.recommendations.touches).toBe(1);
    } finally {
      await test.pool.query('drop function doze cascade');
    }
  },
);

/** Returns a pool that calls back when an organisation's step starts. */
function watched(onStep: (organisationId: string) => void): Pool {
  const watchedClients = new Set<Client>();
  return {
    query: test.pool.query.bind(test.pool),
    async connect() {
      const client = await test.pool.connect();
      if (watchedClients.has(client)) return client;
      watchedClients.add(client);
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      client.query = ((...args: [{ name?: string; values?: unknown[] }]) => {
        if (args[0].name === 'report: begin') onStep(String(args[0].values?.[0]));
        return query(...args);
      }) as typeof client.query;
      return client;
    },
  } as unknown as Pool;
}

it('an organisation whose last step failed comes after the others, even if they use up the time', async () => {
  const bad = await newOrganisation('failing');
  const good = await Promise.all(['good-1', 'good-2', 'good-3', 'good-4'].map(newOrganisation));
  await test.pool.query(
    `alter table report_progress add constraint planted
     check (organisation_id <> '${bad.organisationId}' or step = 0) not valid`,
  );
  const served: string[] = [];
  let msPerStep = 0;
  const pool = watched((organisationId) => {
    served.push(organisationId);
    if (msPerStep > 0) vi.advanceTimersByTime(msPerStep);
  });
  const keeper = new ReportKeeper(pool, keeperConfig, () => () => false);
  const runAgain = async () => {
    for (const one of [bad, ...good]) await one.touch('2026-03-10T11:30:00Z');
    await numberForAll(test.pool);
    served.length = 0;
    vi.advanceTimersByTime(limits.reportPauseMsMax);
    await expect(keeper.run()).rejects.toThrow('planted');
  };
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    await numberForAll(test.pool);
    await expect(keeper.run()).rejects.toThrow('planted');
    await runAgain();
    const goodIds = good.map(({ organisationId }) => organisationId);
    expect(new Set(served.slice(0, served.indexOf(bad.organisationId)))).toEqual(new Set(goodIds));
    msPerStep = limits.reportMsPerRun / 2 + 1;
    await runAgain();
    expect(served).toEqual([expect.toBeOneOf(goodIds), expect.toBeOneOf(goodIds), bad.organisationId]);
  } finally {
    msPerStep = 0;
    vi.useRealTimers();
    await test.pool.query('alter table report_progress drop constraint planted');
  }
});

// Citus does not allow such a trigger on a distributed table.
it.skipIf(inject('citus') !== null)(
  'a lost connection ends the run, and pauses no organisation whose step had not started',
  async () => {
    const all = await Promise.all(['lost-1', 'lost-2', 'lost-3', 'lost-4'].map(newOrganisation));
    for (const { organisationId } of all) await count(organisationId);
    for (const one of all) await one.touch('2026-03-10T11:30:00Z');
    await numberForAll(test.pool);
    await test.pool.query(`
    create function hang_up() returns trigger language plpgsql as $$ begin
      perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
    create trigger planted before update on report_progress execute function hang_up()`);
    const keeper = new ReportKeeper(test.pool, keeperConfig, () => () => false);
    try {
      await expect(keeper.run()).rejects.toThrow(/terminat/);
    } finally {
      await test.pool.query('drop function hang_up cascade');
    }
    await keeper.run();
    const reports = await Promise.all(all.map(({ report }) => report()));
    const counted = reports.map(({ total }) => total.recommendations.touches).toSorted();
    expect(counted).toEqual([0, 1, 1, 1]);
  },
);

it('an organisation that cannot be counted pauses, and does not prevent others from being counted', async () => {
  const bad = await newOrganisation('soylent');
  const good = await newOrganisation('stark');
  for (const one of [bad, good]) await one.touch('2026-03-10T11:30:00Z');
  await numberForAll(test.pool);
  await test.pool.query(
    `alter table report_progress add constraint planted
     check (organisation_id <> '${bad.organisationId}' or step = 0) not valid`,
  );
  const touchesOf = async ({ report }: typeof bad) => (await report()).total.recommendations.touches;
  const keeper = new ReportKeeper(test.pool, keeperConfig);
  let failures = 0;
  const runs = async () => {
    await keeper.run().catch((error: Error) => {
      expect(error.message).toMatch(/planted/);
      failures++;
    });
    return [failures > 0, await touchesOf(good)];
  };
  await expect.poll(runs).toEqual([true, 1]);
  await test.pool.query('alter table report_progress drop constraint planted');
  await keeper.run();
  expect([failures, await touchesOf(bad)]).toEqual([1, 0]);
  await count(bad.organisationId);
  expect(await touchesOf(bad)).toBe(1);
});

// Citus does not allow such a trigger on a distributed table.
it.skipIf(inject('citus') !== null)(
  'an organisation whose step is too large continues with smaller ones after a pause',
  async () => {
    const tyrell = await newOrganisation('tyrell');
    // Add one interaction per change, because a step is never smaller than a change.
    for (let minute = 10; minute < 10 + limits.reportIdsPerStepMin + 20; minute++)
      await tyrell.touch(new Date(Date.parse('2026-03-10T00:00:00Z') + minute * 60_000).toISOString());
    await numberForAll(test.pool);
    await test.pool.query(`
    create function refuse_many() returns trigger language plpgsql as $$ begin
      if (select count(*) from added) > ${limits.reportIdsPerStepMin} then raise exception 'planted: too many'; end if;
      return null; end $$;
    create trigger planted after insert on report_interactions referencing new table as added
      for each statement execute function refuse_many()`);
    const touches = async () => (await tyrell.report()).total.recommendations.touches;
    const keeper = new ReportKeeper(test.pool, keeperConfig, () => () => false);
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const failures: number[] = [];
      for (let run = 1; run <= 5 && (await touches()) === 0; run++) {
        await keeper.run().catch((error: Error) => {
          expect(error.message).toMatch(/planted/);
          failures.push(run);
        });
        vi.advanceTimersByTime(limits.reportPauseMsMax);
      }
      // The steps have 10,000, 2,000, 400 and 100 ids.
      expect(failures).toEqual([1, 2, 3]);
      expect(await touches()).toBe(limits.reportIdsPerStepMin + 20);
    } finally {
      vi.useRealTimers();
      await test.pool.query('drop trigger planted on report_interactions');
    }
  },
);

it('while the process is busy, steps are small', async () => {
  const wayne = await newOrganisation('wayne');
  // Together, the changes fit into a normal step, but not into a small one.
  const perChange = limits.reportIdsPerBusyStep / 2;
  const changes = 3;
  const touchMany = async (day: number) => {
    for (let change = 0; change < changes; change++)
      await wayne.touches(perChange, `2026-03-${day}T11:30:00Z`);
    await numberForAll(test.pool);
  };
  const steps = async () => {
    const { rows } = await test.pool.query<{ step: string }>(
      'select step from report_progress where organisation_id = $1',
      [wayne.organisationId],
    );
    return Number(rows[0]?.step);
  };
  const countUntil = async (touches: number, keeper: ReportKeeper) => {
    const before = await steps();
    const touchesNow = async () => (await wayne.report()).total.recommendations.touches;
    while ((await touchesNow()) < touches) await keeper.run();
    return (await steps()) - before;
  };
  await count(wayne.organisationId);
  await touchMany(11);
  expect(
    await countUntil(changes * perChange, new ReportKeeper(test.pool, keeperConfig, () => () => false)),
  ).toBe(1);
  await touchMany(12);
  expect(
    await countUntil(2 * changes * perChange, new ReportKeeper(test.pool, keeperConfig, () => () => true)),
  ).toBe(2);
});
