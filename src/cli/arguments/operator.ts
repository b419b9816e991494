import { once } from 'node:events';
import { userInfo } from 'node:os';
import type { ListedToken } from '../../operator/admin-tokens.ts';
import type { Operator } from '../../operator/audit-log.ts';
import { findOrganisation, type Organisation } from '../../operator/organisations.ts';
import type { Pool } from '../../postgres/pool.ts';
import { commandError } from './help.ts';

export function operator(): Operator {
  return { actor: `cli:${userName()}` };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user id without an account.
    return String(process.getuid?.() ?? 'unknown');
  }
}

export async function organisationNamed(pool: Pool, slug: string): Promise<Organisation> {
  const organisation = await findOrganisation(pool, slug);
  if (!organisation) throw noOrganisation(slug);
  return organisation;
}

export function noOrganisation(slug: string): Error {
  return commandError(`there is no organisation "${slug}"; organisations list shows them`);
}

export function stateOf({ revoked_at, expires_at }: Pick<ListedToken, 'revoked_at' | 'expires_at'>): string {
  if (revoked_at !== null) return `revoked ${revoked_at}`;
  if (expires_at === null) return 'active';
  return `${Date.parse(expires_at) < Date.now() ? 'ended' : 'ends'} ${expires_at}`;
}

export function headerOf(columns: readonly string[]): string {
  return columns.map((column) => column.toUpperCase()).join('\t');
}

/** Reads page by page, because there may be hundreds of thousands of rows. */
export async function printAll<T>(
  readPage: (after: string | null) => Promise<readonly T[]>,
  options: {
    json: boolean;
    columns: readonly string[];
    nameOf: (row: T) => string;
    lineOf: (row: T) => string;
  },
): Promise<void> {
  const { json, columns, nameOf, lineOf } = options;
  const print = (text: string) => process.stdout.write(text);
  if (json) print('[');
  for (let after: string | null = null, count = 0; ; ) {
    const rows: readonly T[] = await readPage(after);
    if (!json && after === null) print(`${headerOf(columns)}\n`);
    for (const row of rows) {
      if (json) print(`${count > 0 ? ',' : ''}${JSON.stringify(row)}`);
      else print(`${lineOf(row)}\n`);
      count++;
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    after = nameOf(last);
  }
  if (json) print(']\n');
}

/** Writes to stdout, and waits while its reader is slower. */
export async function writeOut(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}
