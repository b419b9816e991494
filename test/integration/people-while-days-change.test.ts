import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { newAccessOrganisation, suppressions, visit } from '../support/access-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { collectPart, sweepStep } from '../support/jobs.ts';
import { many } from '../support/new-records.ts';
import { tablesWith } from '../support/tables-with.ts';

/** Days get their indexes while erasures and access requests search them for people. */

let test: TestApp;
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

/** More people than a step searches for. The first one has interactions. */
const userIds = many(1_001, (at) => `user ${10_000 + at}`);
const [first = ''] = userIds;

const dayMs = 24 * 3_600_000;
const today = Math.floor(Date.now() / dayMs);
const [yesterday, dayBefore] = [uuidFloor((today - 1) * dayMs), uuidFloor((today - 2) * dayMs)];

async function setIndexed(firstId: string, isIndexed: boolean): Promise<void> {
  const text = 'update interaction_partitions set is_indexed = $2 where first_id = $1';
  expect((await test.pool.query(text, [firstId, isIndexed])).rowCount).toBe(1);
}

interface Position {
  readonly table: number;
  readonly after: { readonly below: string };
}

it.each([
  ['erasure', 'this release'],
  ['erasure', 'an earlier release'],
  ['access request', 'this release'],
  ['access request', 'an earlier release'],
])(
  'an %s that %s began finds everything on a day that gets its indexes in between',
  async (request, release) => {
    const acme = await newAccessOrganisation(test, serving);
    const { organisationId } = acme;
    await setIndexed(yesterday, true);
    await setIndexed(dayBefore, false);
    await acme.send('POST', '/user-interactions', { ...visit, user_id: first });
    await test.pool.query(
      `insert into interactions
       select organisation_id, past.id, interaction_type, user_id, student_id, item_type, item_id, city, country,
         platform, event_timestamp, source, recommendation_id, event_time
       from interactions cross join unnest($2::uuid[]) as past(id) where organisation_id = $1`,
      [organisationId, [yesterday, dayBefore]],
    );
    const isErasure = request === 'erasure';
    const step = () => (isErasure ? sweepStep : collectPart)(serving, organisationId, suppressions);
    const sent = await acme.send('POST', isErasure ? '/v1/erasures' : '/v1/access-requests', {
      user_ids: userIds,
    });
    expect(sent.statusCode, sent.body).toBe(202);

    // Yesterday is searched for all people but the last.
    const position = async () => {
      const { rows } = await test.pool.query<{ position: Position }>(
        `select position from jobs where organisation_id = $1 and step = 'rows' and position::text like '%' || $2 || '%'`,
        [organisationId, userIds.at(-2)],
      );
      return rows[0]?.position;
    };
    while (!(await position())) await step();
    const { table, after } = (await position()) as Position;
    if (release === 'an earlier release')
      await test.pool.query('update jobs set position = $2 where organisation_id = $1', [
        organisationId,
        { table, after: { below: after.below, afterPerson: userIds.at(-2) } },
      ]);
    await setIndexed(dayBefore, true);

    if (isErasure) {
      await acme.sweep();
      expect(await tablesWith(test.pool, [first])).toEqual({});
    } else {
      await acme.collect();
      expect(await acme.download(sent.json().access_request_id)).toHaveLength(3);
    }
  },
);
