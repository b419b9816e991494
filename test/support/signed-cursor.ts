import { createHmac } from 'node:crypto';
import { queryDatabase } from './query-database.ts';

/** Signs for an organisation as the service does, with the key of its database: for a cursor that it would not give out now. */
export async function signerOf(
  databaseUrl: string,
  slug: string,
  purpose: 'feed' | 'replay' | 'report',
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

/** A cursor of the feed after so many ids of a change. */
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

/** The cursor with which a replay continues after a rejection. */
export function replayCursorAfter(sign: (text: string) => string, type: string, rejectionId: string): string {
  return `${type}.${rejectionId}.${sign(`${type}.${rejectionId}`)}`;
}

/** The cursor of a page of the report that ended with this group. */
export function reportCursorAfter(sign: (text: string) => string, groupBy: string, key: string): string {
  return `${sign(`${groupBy} ${key}`)}.${key}`;
}
