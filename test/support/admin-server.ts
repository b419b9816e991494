import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, apiOf } from './api.ts';
import { type BuiltServer, startBuiltServer } from './built-server.ts';
import { createTestDatabase } from './database.ts';
import { queryDatabase } from './query-database.ts';

export const adminToken = 'the-token-of-the-operator-in-these-tests';

export interface AdminServer extends BuiltServer {
  readonly adminUrl: string;
  /** The admin API, as whoever has the token. */
  readonly admin: Api;
}

/** The built service with its admin API beside it, each on a port of its own. */
export async function startAdminServer(env: Record<string, string> = {}): Promise<AdminServer> {
  const DATABASE_URL = env.DATABASE_URL ?? (await createTestDatabase());
  const ADMIN_DATABASE_URL = await adminDatabaseUrl(DATABASE_URL);
  const settings = { ADMIN_TOKEN: adminToken, ADMIN_PORT: '0', DATABASE_URL, ADMIN_DATABASE_URL };
  const server = await startBuiltServer({ ...settings, ...env });
  const adminUrl = await adminUrlOf(server).catch(async (error) => {
    await server.stop();
    throw error;
  });
  return { ...server, adminUrl, admin: apiOf(adminUrl, adminToken) };
}

/** The same database for somebody who may do what the admin API does, and no more. */
async function adminDatabaseUrl(ownerUrl: string): Promise<string> {
  const url = new URL(ownerUrl);
  url.username = 'intake_admin_test';
  // Another file may be making it at this moment: a role belongs to the whole cluster.
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
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(20)) {
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
