import { queryDatabase } from './query-database.ts';

export const rejectionKinds = 40;
export const rejectionsPerRequest = 5_000;

/** Inserts rejected transactions directly with SQL: the given number for each organisation, by slug. */
export async function fillRejections(
  databaseUrl: string,
  counts: Readonly<Record<string, number>>,
): Promise<void> {
  // Rebuilding the indexes afterwards is faster than maintaining them.
  const indexes = await queryDatabase<{ name: string; definition: string }>(
    databaseUrl,
    `select indexname as name, indexdef as definition from pg_indexes
     where tablename = 'rejections' and indexname <> 'rejections_pkey'`,
  );
  for (const { name } of indexes) await queryDatabase(databaseUrl, `drop index ${name}`);
  for (const [slug, count] of Object.entries(counts)) if (count > 0) await fill(databaseUrl, slug, count);
  for (const { definition } of indexes) await queryDatabase(databaseUrl, definition);
}

/** Adds rows that look like uploads of 5,000 records over twelve days, spread evenly over forty kinds of errors. */
async function fill(databaseUrl: string, slug: string, count: number): Promise<void> {
  await queryDatabase(
    databaseUrl,
    `insert into rejection_kinds
     select o.organisation_id, md5('kind ' || k)::uuid, 'transactions',
       case k when 0 then array['shop_id'] else array['amount', 'field' || k] end,
       case k when 0 then array['reference_not_found'] else array['wrong_type', 'required'] end,
       case k when 0 then array['is missing'] else array['must be a number', 'is missing'] end, now(), $1::bigint / $2
     from organisations o cross join generate_series(0, $2::integer - 1) k where o.slug = $3`,
    [count, rejectionKinds, slug],
  );
  await queryDatabase(
    databaseUrl,
    `insert into rejections (organisation_id, rejection_id, type, kind_id, request_id, index, record_id, record)
     select o.organisation_id, uuid_floor(now() - interval '20 days' + n * interval '1 second'), 'transactions',
       kinds.ids[1 + n % $2], requests.ids[1 + n / $3], n % $3, md5('record ' || n)::uuid,
       '{"transaction_id":"' || md5('record ' || n)::uuid || '","shop_id":"00000000-0000-4000-8000-000000000000",'
         '"region":"GB","savings":2.5,"amount":22.49,"source":"online","discount_name":"ten off on everything",'
         '"discount_type":"percentage","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"}'
     from organisations o cross join generate_series(0, $1::integer - 1) n
     cross join (select array_agg(md5('kind ' || k)::uuid order by k) as ids from generate_series(0, $2 - 1) k) kinds
     cross join (
       select array_agg(md5('request ' || r)::uuid order by r) as ids from generate_series(0, $1 / $3::integer) r) requests
     where o.slug = $4`,
    [count, rejectionKinds, rejectionsPerRequest, slug],
  );
}
