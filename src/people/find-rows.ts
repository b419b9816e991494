import { limits } from '../limits.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import type { Found, People, Searched } from './people.ts';
import type { PersonalTable } from './personal-tables.ts';

/** A row, with the ids of all people in it. */
export interface RowOfPeople {
  readonly id: string;
  readonly people: readonly (string | null)[];
}

/** The last row that was read. Only present if there may be more rows. */
interface Last {
  readonly id: string;
  readonly people: null;
}

/**
 * Finds people's rows among the next rows of a table. Reads a limited number of rows in primary key order, because
 * additional indexes would slow down uploads.
 */
export async function nextRows(
  db: Searched,
  { organisationId, idTable }: People,
  table: PersonalTable,
  after: string | null,
): Promise<Found<RowOfPeople>> {
  const columns = table.identifying.map((column) => `t.${column}::text`).join(', ');
  const scanned = `
    select ${table.id} as id, array[${columns}] as people from ${table.name} t
    where organisation_id = $1 and ${table.id} > $2 order by ${table.id} limit ${limits.erasureRowsPerScan}`;
  const { rows } = await db.query<RowOfPeople | Last>(
    // The ids are unnested so that PostgreSQL can use a hash join. With an array, it would compare each row with each id.
    `with s as materialized (${scanned})
     select distinct s.id, s.people from s cross join unnest(s.people) as p(id)
     join ${idTable} e on e.organisation_id = $1 and e.id = p.id
     union all
     (select s.id, null from s order by s.id offset ${limits.erasureRowsPerScan - 1})`,
    [organisationId, after ?? firstUuid],
  );
  return {
    found: rows.filter((row): row is RowOfPeople => row.people !== null),
    after: rows.find(({ people }) => people === null)?.id ?? null,
  };
}
