import { inject } from 'vitest';

export interface WantedKey {
  /** The settings that lead to the database. */
  readonly database: { readonly DATABASE_URL: string; readonly DATABASE_POOLER: string };
  /** Created unless it exists. */
  readonly organisation: string;
  /** None for a key that may do everything. */
  readonly scopes: readonly string[];
}

export interface WantedServer {
  /** Servers are shared by this name. */
  readonly name: string;
  readonly databaseUrl: string;
  readonly main: string;
  readonly env: Record<string, string | undefined>;
}

export interface HostedServer {
  readonly url: string;
  readonly databaseUrl: string;
}

/** Asks the process that runs the tests; see run-host.ts. */
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
