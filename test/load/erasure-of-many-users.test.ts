import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectSwept, requestErasure } from '../support/erase-people.ts';
import { fillVisits } from '../support/fill-visits.ts';
import { expectInTime } from '../support/in-time.ts';
import { newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** A student who was seen with many user ids, or who is in many rows of the report, must not hold up a process. */

const users = 100_000;
const reportRows = 300_000;
const blockedMsMax = 1_000;
let server: BuiltServer;
const shop = newShop();
beforeAll(async () => {
  server = await startBuiltServer();
});
afterAll(() => server.stop());

/** Creates an organisation with one student. */
async function newOrganisation(slug: string): Promise<{ api: Api; student: string }> {
  const api = apiOf(server.url, await server.createKey(slug, ...everyPermission));
  const student = randomUUID();
  await api.upload('shops', [shop]);
  await api.upload('customers', [{ customer_id: student, user_id: randomUUID(), region: 'GB' }]);
  return { api, student };
}

/** Returns the longest time that the process took to answer a request that needs no database. */
async function longestAnswerMs(until: Promise<unknown>): Promise<number> {
  let isOver = false;
  const ended = until.finally(() => {
    isOver = true;
  });
  // The failure is reported below.
  ended.catch(() => {});
  let longest = 0;
  while (!isOver) {
    const startMs = performance.now();
    await apiOf(server.url).get('/health/live');
    longest = Math.max(longest, performance.now() - startMs);
    await sleep(5);
  }
  await ended;
  return longest;
}

it(`erasing a student with ${users} user ids blocks the process for less than a second`, async () => {
  let attempts = 0;
  await expectInTime(async () => {
    const slug = `visits-${++attempts}`;
    const { api, student } = await newOrganisation(slug);
    await fillVisits(server.databaseUrl, { slug, student, shopId: shop.shop_id, users });
    const erasing = requestErasure(api, { customer_ids: [student] }).then((id) => expectSwept(api, id));
    return [{ what: 'the slowest answer', ms: await longestAnswerMs(erasing), promisedMs: blockedMsMax }];
  });
});

it(`a student with ${reportRows} rows in the report is swept`, async () => {
  const { api, student } = await newOrganisation('report');
  await server.run('organisations', 'set-report', 'report', 'on');
  await queryDatabase(
    server.databaseUrl,
    `insert into report_interactions (organisation_id, student_id, item_id, basis, event_time, interaction_id, item_type,
       is_code, platform, country, recommendation_id, step)
     select organisation_id, $1, $2, 'recommendation', now() - make_interval(secs => n), gen_random_uuid(), 'SHOP', false,
       'WEB', 'GB', gen_random_uuid(), 1
     from organisations cross join generate_series(1, ${reportRows}) n where slug = 'report'`,
    [student, shop.shop_id],
  );
  await expectSwept(api, await requestErasure(api, { customer_ids: [student] }));
  const left = await queryDatabase(
    server.databaseUrl,
    'select from report_interactions where student_id = $1 limit 1',
    [student],
  );
  expect(left).toEqual([]);
});
