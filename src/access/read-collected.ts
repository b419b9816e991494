import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { LineBuffer } from '../records/line-buffer.ts';

interface Collected {
  readonly type: string;
  readonly id: string;
  readonly record: string;
}

/**
 * Streams the collected records, one per line. It runs one query at a time and holds no connection between queries,
 * however slowly the client reads. It skips people whose erasure has started in the meantime.
 */
export async function* collectedLines(
  pool: Pool,
  organisationId: string,
  accessRequestId: string,
): AsyncGenerator<Buffer> {
  const lines = new LineBuffer();
  for (let after = { type: '', id: '' }; ; ) {
    const { rows } = await pool.query<Collected>(
      `select type, id, record from (
         select type, id, record, sum(octet_length(record)) over (order by type, id) - octet_length(record) as before
         from (
           select type, id, record from access_request_records r
           where organisation_id = $1 and access_request_id = $2 and (type, id) > ($3, $4) and not exists (
             select from jsonb_array_elements_text(r.people) as p(id)
             join erasure_ids e on e.organisation_id = $1 and e.id = p.id)
           order by type, id limit ${limits.recordsPerRead}) as next) as sized
       where before < ${limits.recordCharactersPerRead} order by type, id`,
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
