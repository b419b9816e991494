import { inject } from 'vitest';

export interface WantedKey {
  /** The database settings. */
  readonly database: { readonly DATABASE_URL: string; readonly DATABASE_POOLER: string };
  /** The organisation, which is created unless it exists. */
  readonly organisation: string;
  /** The key's scopes. An empty list requests a key with all permissions. */
  readonly scopes: readonly string[];
}

export interface WantedServer {
  /** The server's name. Test files that use the same name share a server. */
  readonly name: string;
  readonly databaseUrl: string;
  readonly main: string;
  readonly env: Record<string, string | undefined>;
}

export interface HostedServer {
  readonly url: string;
  readonly databaseUrl: string;
}

/** Calls the main test process (see run-host.ts). */
export async function askRunHost<Answer>(
  act: 'key' | 'find-server' | 'start-server',
  wanted: WantedKey | WantedServer | Pick<WantedServer, 'name'>,
): Promise<Answer> {
  const response = await fetch(`${inject('runHostUrl')}/${act}`, {
    method: 'POST',
    body: JSON.stringify(wanted),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return JSON.parse(text);
}
