// postgres/: pools, transactions and their retries, migrations, paging. Knows no table of a capability.

/** SQL for an instant as JSON has it, to the millisecond. */
export function isoTime(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

/**
 * SQL for an instant as JSON has it, with as many digits of a second as it has. PostgreSQL's own way of writing one follows
 * the time zone and the date style of the session, and on Citus that session is a worker's, which none of our settings
 * reach. In JSON a time without a zone is always written like this.
 */
export function exactTime(column: string): string {
  return `btrim(to_json(${column} at time zone 'UTC')::text, '"') || 'Z'`;
}
