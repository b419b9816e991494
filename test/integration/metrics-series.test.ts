// @module-tag full

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it } from 'vitest';
import { hashKey, makeKey } from '../../src/keys/key-format.ts';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { many } from '../support/new-records.ts';
import { scrapeMetrics } from '../support/scrape-metrics.ts';

const organisations = Number(process.env.ORGANISATIONS ?? 500);
const atOnce = 32;

/** Matches Node and maintenance metrics, which can appear at any time. */
const comesByItself =
  /^(nodejs_|intake_maintenance|intake_partitions|intake_rejections_open|intake_report_lag|intake_keys_exp|intake_quotas|intake_work|intake_lake|intake_log_backup)/;

const newTag = () => ({ tag_id: randomUUID(), name: 'vegan' });

/** Creates organisations directly in the database, each with a key. Running commands instead would take an hour. */
async function makeKeys(databaseUrl: string, count: number): Promise<string[]> {
  const made = many(count, () => ({ organisationId: randomUUID(), ...makeKey() }));
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    `insert into organisations (organisation_id, slug, name) select id, 'o-' || id, 'o' from unnest($1::uuid[]) as id`,
    [made.map(({ organisationId }) => organisationId)],
  );
  await client.query(
    `insert into api_keys (key_id, organisation_id, key_sha256, permissions)
     select key_id, organisation_id, key_sha256, '{data:write}'
     from unnest($1::text[], $2::uuid[], $3::bytea[]) as k(key_id, organisation_id, key_sha256)`,
    [
      made.map(({ keyId }) => keyId),
      made.map(({ organisationId }) => organisationId),
      made.map(({ key }) => hashKey(key)),
    ],
  );
  await client.end();
  return made.map(({ key }) => key);
}

it(
  `${organisations.toLocaleString('en')} organisations that upload add no series`,
  async () => {
    const databaseUrl = await createTestDatabase();
    const port = await freePort();
    const server = await startBuiltServer({
      DATABASE_URL: databaseUrl,
      METRICS_PORT: String(port),
    });
    const series = async () =>
      [...(await scrapeMetrics(`http://127.0.0.1:${port}/metrics`)).keys()]
        .filter((name) => !comesByItself.test(name))
        .sort();
    const [first = '', ...others] = await makeKeys(databaseUrl, organisations + 1);
    const upload = (key: string) => apiOf(server.url, key).upload('tags', [newTag(), { tag_id: 'no' }]);
    try {
      // The first upload creates the series that every upload of this kind needs.
      expect((await upload(first)).status).toBe(207);
      const before = await series();
      const left = [...others];
      const work = async () => {
        for (let key = left.pop(); key !== undefined; key = left.pop())
          expect((await upload(key)).status).toBe(207);
      };
      await Promise.all(many(atOnce, work));
      expect(await series()).toEqual(before);
    } finally {
      await server.stop();
    }
  },
  1_200_000 + organisations * 60,
);
