import { queryDatabase } from './query-database.ts';

interface Visits {
  readonly slug: string;
  readonly student: string;
  readonly shopId: string;
  readonly users: number;
}

/** Stores an interaction of the student with each of many user ids. */
export async function fillVisits(
  databaseUrl: string,
  { slug, student, shopId, users }: Visits,
): Promise<void> {
  await queryDatabase(
    databaseUrl,
    `insert into interactions (organisation_id, interaction_id, interaction_type, user_id, student_id, item_type, item_id,
       event_timestamp, event_time)
     select organisation_id, (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0') || '7'
         || lpad(to_hex(n % 4096), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid,
       'SHARE', 'user-' || n, $1, 'SHOP', $2, '1700000000', now()
     from organisations cross join generate_series(1, $4::integer) n where slug = $3`,
    [student, shopId, slug, users],
  );
}
