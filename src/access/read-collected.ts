import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { LineBuffer } from '../records/line-buffer.ts';
import { isErasedIn, isErasedText } from '../records/tables.ts';
import { withinBytes } from '../records/within-bytes.ts';
import { mentions } from '../registry/personal.ts';
import { personalFields } from '../registry/upload-types.ts';

const fields = personalFields('interactions');
const fieldOf = (field: string) => `(r.record::json->>'${field}')`;
const isErased = (field: string) => isErasedIn('interactions', field, fieldOf(field));

/** The interaction belongs to somebody else and only mentions a person who is being erased. */
const isMentioned = `(r.is_hidden and r.type = 'interactions' and ${mentions(fields, isErased, fieldOf)})`;
const withoutMentioned = `(r.record::jsonb || '${JSON.stringify(Object.fromEntries(fields.alone.map((field) => [field, null])))}')::text`;

const visibleLines = `
  select type, id, case when ${isMentioned} then ${withoutMentioned} else record end as record
  from (select *, exists (
      select from jsonb_array_elements_text(a.people) as p(id) where ${isErasedText('p.id')}) as is_hidden
    from access_request_records a
    where organisation_id = $1 and access_request_id = $2 and (type, id) > ($3, $4)) as r
  where not is_hidden or ${isMentioned}
  order by type, id limit ${limits.recordsPerRead}`;

/**
 * Runs one query at a time and holds no connection between queries, however slowly the client reads. Skips records of
 * people whose erasure has started in the meantime, and their ids in interactions of others.
 */
export async function* collectedLines(
  pool: Pool,
  organisationId: string,
  accessRequestId: string,
): AsyncGenerator<Buffer> {
  const lines = new LineBuffer();
  for (let after = { type: '', id: '' }; ; ) {
    const { rows } = await pool.query<{ type: string; id: string; record: string }>(
      `select type, id, record from ${withinBytes({
        rows: visibleLines,
        order: 'type, id',
        bytesMax: limits.recordCharactersPerRead,
      })} as next
       order by type, id`,
      [organisationId, accessRequestId, after.type, after.id],
    );
    const last = rows.at(-1);
    if (!last) return;
    for (const { type, id, record } of rows)
      lines.add(`{"type":${JSON.stringify(type)},"id":${JSON.stringify(id)},"record":${record}}`);
    yield lines.take();
    after = last;
  }
}
