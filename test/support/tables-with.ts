import type pg from 'pg';

/** Returns the number of rows that contain any of the strings, for each table with such rows. */
export async function tablesWith(
  admin: Pick<pg.Client | pg.Pool, 'query'>,
  texts: readonly string[],
): Promise<Record<string, number>> {
  const { rows: tables } = await admin.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  const found: Record<string, number> = {};
  for (const { name } of tables) {
    const { rows } = await admin.query<{ count: number }>(
      `select count(*)::integer as count from ${name} t where exists (
         select from unnest($1::text[]) as x(text) where position(x.text in lower(t::text)) > 0)`,
      [texts.map((text) => text.toLowerCase())],
    );
    if (rows[0]?.count) found[name] = rows[0].count;
  }
  return found;
}
