import { uuidLiteral } from '../interactions/interaction-rows.ts';
import { limits } from '../limits.ts';
import { withoutSorting } from '../postgres/index-order.ts';
import type { Pool } from '../postgres/pool.ts';
import { takeRows } from '../postgres/take-rows.ts';
import { LineBuffer } from '../records/line-buffer.ts';
import { quote } from '../records/tables.ts';
import { interaction } from '../registry/interaction.ts';
import { firstUuid } from '../registry/uuid-v7.ts';

const fields = ['interaction_id', ...Object.keys(interaction)].map(quote).join(', ');

/**
 * Reads all interactions after an id, oldest first, so that the import stores them in the order in which they were
 * received. Reads one partition at a time. Otherwise the planner would have to consider every day's partition for each
 * query.
 */
export async function* interactionLines(
  pool: Pool,
  organisationId: string,
  after: string = firstUuid,
): AsyncGenerator<Buffer> {
  const { rows: days } = await pool.query<{ end_id: string }>(
    'select end_id from interaction_partitions where end_id > $1 order by first_id',
    [after],
  );
  const lines = new LineBuffer();
  let last = after;
  for (const { end_id } of days)
    for (let count: number = limits.recordsPerRead; count === limits.recordsPerRead; ) {
      const text = `
        select r.interaction_id, row_to_json(r)::text as interaction from (
          select ${fields} from interactions
          where organisation_id = $1 and interaction_id > ${uuidLiteral(last)} and interaction_id < ${uuidLiteral(end_id)}
          order by interaction_id limit ${limits.recordsPerRead}) r
        order by r.interaction_id`;
      const take = (id: string, line: string) => {
        last = id;
        lines.add(line);
      };
      const query = { text, values: [organisationId] };
      count = await withoutSorting(pool, (client) => takeRows(client, query, take));
      yield lines.take();
    }
}
