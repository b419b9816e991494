import type { Pool } from '../postgres/pool.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { idsInText, uuidPattern } from './ids-in-text.ts';

/** Returns the ids of people whose erasure is not finished yet. Nothing that contains these ids may be read. */
export async function hiddenIds(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'ids of people being erased',
    text: 'select id from erasure_ids where organisation_id = $1',
    values: [organisationId],
  });
  return new Set(rows.map(({ id }) => id));
}

/** Returns whether a failed record contains the id of one of these people. */
export function namesPerson(
  ids: { has(id: string): boolean },
  { type, record_id, record }: { type: string; record_id: string | null; record?: string | null },
): boolean {
  if (record_id !== null && ids.has(record_id)) return true;
  return record != null && idsInText(type as UploadType, record).some((id) => ids.has(id));
}

/** Returns the response to an upload without these ids. */
export function answerWithout(ids: { has(id: string): boolean }, answer: string): string {
  return answer.replaceAll(new RegExp(`"(${uuidPattern.source})"`, 'gi'), (quoted, id: string) =>
    ids.has(id.toLowerCase()) ? 'null' : quoted,
  );
}
