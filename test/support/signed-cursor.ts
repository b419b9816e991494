import { createHmac } from 'node:crypto';
import { queryDatabase } from './query-database.ts';

/**
 * Returns a function that signs cursors for an organisation with the key in its database, as the service does. Tests
 * use it for cursors that the service would not issue now.
 */
export async function signerOf(
  databaseUrl: string,
  slug: string,
  purpose: 'feed' | 'replay' | 'report' | 'lake',
): Promise<(text: string) => string> {
  const [row] = await queryDatabase<{ key: Buffer; organisation_id: string }>(
    databaseUrl,
    'select key, organisation_id from cursor_key, organisations where slug = $1',
    [slug],
  );
  if (!row) throw new Error(`there is no organisation ${slug}`);
  const { key, organisation_id } = row;
  return (text) =>
    createHmac('sha256', key)
      .update(`${purpose} ${organisation_id} ${text}`)
      .digest('base64url')
      .slice(0, 22);
}

/** Returns a feed cursor that points into a change, after its first `offset` ids. */
export function feedCursor(
  sign: (text: string) => string,
  {
    number,
    offset = 0,
    size = 0,
    epoch = '00000000',
  }: Partial<Record<'offset' | 'size', number>> & {
    readonly number: number;
    readonly epoch?: string;
  },
): string {
  return `${number}-${offset}-${size}-${epoch}-${sign(`${number}-${size}-${epoch}`)}`;
}

/** Returns the cursor with which a replay continues after a rejection. */
export function replayCursorAfter(sign: (text: string) => string, type: string, rejectionId: string): string {
  return `${type}.${rejectionId}.${sign(`${type}.${rejectionId}`)}`;
}

/** Returns the cursor that continues after a report page whose last group was this one. */
export function reportCursorAfter(sign: (text: string) => string, groupBy: string, key: string): string {
  return `${sign(`${groupBy} ${key}`)}.${key}`;
}

/** Returns the cursor that continues after a page of lake interactions whose last file was this one. */
export function lakeCursorAfter(sign: (text: string) => string, version: number, name: string): string {
  return `${version}.${name}.${sign(`interactions ${version}.${name}`)}`;
}
