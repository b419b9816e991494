/** ISO 8601 with milliseconds. */
export function isoTime(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

/**
 * ISO 8601 with all digits. In JSON, a timestamp without time zone always has this form. PostgreSQL's text form depends
 * on settings of the session, and in a cluster the session is on another node, which our settings do not affect.
 */
export function exactTime(column: string): string {
  return `btrim(to_json(${column} at time zone 'UTC')::text, '"') || 'Z'`;
}
