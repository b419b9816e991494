/** Returns SQL that formats an instant in ISO 8601 with milliseconds. */
export function isoTime(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

/**
 * Returns SQL that formats an instant in ISO 8601 with all its digits. PostgreSQL's text form depends on the time zone and
 * date style of the session, and in a cluster the session is on another node, which our settings do not affect. In JSON, a
 * timestamp without time zone always has this form.
 */
export function exactTime(column: string): string {
  return `btrim(to_json(${column} at time zone 'UTC')::text, '"') || 'Z'`;
}
