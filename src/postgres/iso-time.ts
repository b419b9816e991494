// postgres/: pools, transactions and their retries, migrations, paging. Knows no table of a capability.

/** SQL for an instant as JSON has it; PostgreSQL's own way of writing one is its own. */
export function isoTime(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}
