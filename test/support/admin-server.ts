import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, apiOf } from './api.ts';
import { type BuiltServer, startBuiltServer } from './built-server.ts';
import { createTestDatabase } from './database.ts';
import { queryDatabase } from './query-database.ts';

/** A well-formed token with a valid checksum, stored in every server's database. */
export const adminToken = 'intake_admin_nQmlCurLzbeaoO7xkIi3sOOZ9WJIOT4Q3TpoYOEYbRm4YV7OT';

export interface AdminServer extends BuiltServer {
  readonly adminUrl: string;
  /** Calls the admin API with the token `operator`, which has full access. */
  readonly admin: Api;
}

/** Starts the built service with its admin API, each on its own port. */
export async function startAdminServer(env: Record<string, string> = {}): Promise<AdminServer> {
  const DATABASE_URL = env.DATABASE_URL ?? (await createTestDatabase());
  const ADMIN_DATABASE_URL = await adminDatabaseUrl(DATABASE_URL);
  await addAdminToken(DATABASE_URL);
  const settings = { ADMIN_PORT: '0', DATABASE_URL, ADMIN_DATABASE_URL };
  const server = await startBuiltServer({ ...settings, ...env });
  const adminUrl = await adminUrlOf(server).catch(async (error) => {
    await server.stop();
    throw error;
  });
  return { ...server, adminUrl, admin: apiOf(adminUrl, adminToken) };
}

export async function addAdminToken(databaseUrl: string): Promise<void> {
  await queryDatabase(
    databaseUrl,
    `insert into admin_tokens (name, token_sha256, role, created_by)
     values ('operator', sha256('${adminToken}'), 'full', 'test') on conflict do nothing`,
  );
}

/** Returns the URL of the same database for a login that has only the admin API's privileges. */
export async function adminDatabaseUrl(ownerUrl: string): Promise<string> {
  const url = new URL(ownerUrl);
  url.username = 'intake_admin_test';
  // Roles belong to the whole cluster, so another test file may be creating this role at the same time.
  await queryDatabase(
    ownerUrl,
    `do $$ begin
       create role ${url.username} login password '${url.password}' in role intake_admin;
     exception when duplicate_object or unique_violation then null;
     end $$`,
  );
  return url.href;
}

async function adminUrlOf({ log }: BuiltServer): Promise<string> {
  for (const deadline = Date.now() + 240_000; Date.now() < deadline; await sleep(20)) {
    const address = /Admin API listening at (https?:\/\/[^"\s]+)/.exec(log.join('\n'))?.[1];
    if (address) return address;
  }
  throw new Error(`the admin API does not listen:\n${log.join('\n')}`);
}

export const patch = (api: Api, path: string, body: unknown) =>
  api.send(path, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
