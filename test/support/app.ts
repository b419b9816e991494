import type { FastifyInstance } from 'fastify';
import { createParts } from '../../src/cli/serving/composition.ts';
import { readConfig } from '../../src/config.ts';
import { buildApp } from '../../src/http/app.ts';
import type { Parts } from '../../src/http/operation/operation.ts';
import { allPermissions } from '../../src/keys/permissions.ts';
import { changeOrganisation, createOrganisation, issueKey } from '../../src/operator/audited-actions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { unlimited } from './built-server.ts';
import { createTestDatabase } from './database.ts';

/** The real application on its own database, in this process. */
export interface TestApp {
  readonly app: FastifyInstance;
  readonly pool: OwnPool;
  readonly parts: Parts;
  /** The URL for connecting to the app's database as the owner. */
  readonly databaseUrl: string;
  /** Creates an organisation whose report is enabled. Returns its id and a key with all permissions. */
  organisation(slug: string): Promise<{ organisationId: string; key: string }>;
  close(): Promise<void>;
}

export const erasureKey = 'a key of 32 characters or more for tests';

/** Creates an app on a new database, or on the given database to simulate a second process, which may have other keys. */
export async function createTestApp(given?: string, erasureKeys: string = erasureKey): Promise<TestApp> {
  const databaseUrl = given ?? (await createTestDatabase());
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    LOG_LEVEL: 'silent',
    ERASURE_KEYS: erasureKeys,
    LAKE_URL: 'file:///nowhere',
    ...unlimited,
  });
  // On a busy machine, a connection can take seconds, and a request that does not get one in time fails with 503.
  const connectTimeoutMs = config.databaseTimeoutMs;
  const pool = createPool(config, () => {}, { plansOnce: true, connectTimeoutMs });
  const parts = createParts(config, pool);
  const app = await buildApp(parts);
  return {
    app,
    pool,
    parts,
    databaseUrl,
    async organisation(slug) {
      const by = { actor: 'test' };
      const created = await createOrganisation(pool, by, slug, slug);
      if (!created) throw new Error(`${slug} is taken`);
      await changeOrganisation(pool, by, slug, { recommendations_report: true });
      const wanted = {
        organisationId: created.organisation_id,
        permissions: [...allPermissions, 'data:erase', 'data:access'],
      };
      const { key } = await issueKey(pool, by, { ...wanted, label: null, expiresAt: null });
      return { organisationId: created.organisation_id, key };
    },
    async close() {
      await app.close();
      await parts.close();
      await pool.end();
    },
  };
}
