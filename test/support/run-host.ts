import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { readConfig } from '../../src/config.ts';
import { allPermissions } from '../../src/keys/permissions.ts';
import { createOrganisation, issueKey } from '../../src/operator/audited-actions.ts';
import { findOrganisation } from '../../src/operator/organisations.ts';
import { createPool } from '../../src/postgres/pool.ts';
import type { HostedServer, WantedKey, WantedServer } from './ask-run-host.ts';
import { type SpawnedServer, spawnServer } from './spawn-server.ts';

/**
 * Runs in vitest's main process, not in a test file. Keeps the servers that outlive a test file. Also issues keys, and
 * calls the code in src/ to do so, because running a command for each key took half a second. Acceptance tests do not
 * import that code.
 */
export interface RunHost {
  readonly url: string;
  /** Stops the servers, and returns the databases that they used. */
  stop(): Promise<string[]>;
}

export async function startRunHost(): Promise<RunHost> {
  const servers = new Map<string, SpawnedServer & HostedServer>();
  const acts: Record<string, (wanted: never) => Promise<unknown>> = {
    '/key': createKey,
    '/find-server': async ({ name }: { name: string }) => addressOf(servers.get(name)),
    '/start-server': async ({ name, databaseUrl, main, env }: WantedServer) => {
      const started = { ...(await spawnServer(main, env)), databaseUrl };
      servers.set(name, started);
      return addressOf(started);
    },
  };
  const host = createServer(async (request, response) => {
    try {
      const wanted = JSON.parse(await text(request));
      response.end(JSON.stringify(await acts[request.url ?? '']?.(wanted as never)));
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.stack : String(error));
    }
  });
  await once(host.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(host.address() as AddressInfo).port}`,
    async stop() {
      await Promise.all([...servers.values()].map((server) => server.stop()));
      host.closeAllConnections();
      host.close();
      return [...servers.values()].map(({ databaseUrl }) => databaseUrl);
    },
  };
}

function addressOf(server: (SpawnedServer & HostedServer) | undefined): HostedServer | null {
  if (!server) return null;
  const { url, databaseUrl, process, log } = server;
  if (process.exitCode !== null || process.signalCode !== null)
    throw new Error(`a test ended the shared server, which wrote last:\n${log.slice(-20).join('\n')}`);
  return { url, databaseUrl };
}

async function createKey({ database, organisation: slug, scopes }: WantedKey): Promise<string> {
  const pool = createPool(readConfig(database), () => {});
  try {
    const by = { actor: 'test' };
    const organisation =
      (await findOrganisation(pool, slug)) ?? (await createOrganisation(pool, by, slug, slug));
    if (!organisation) throw new Error(`another test created ${slug} at the same moment`);
    const permissions = scopes.length > 0 ? scopes : allPermissions;
    const wanted = {
      organisationId: organisation.organisation_id,
      permissions,
      label: null,
      expiresAt: null,
    };
    return (await issueKey(pool, by, wanted)).key;
  } finally {
    await pool.end();
  }
}
