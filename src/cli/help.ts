const general = `intake-server: data ingestion service

Usage: intake-server <command> [options]   (in a checkout: node dist/main.js <command> [options])

Commands
  serve           serve the API
  migrate         bring the database schema up to date
  organisations   create and list organisations
  keys            issue, list, rotate and revoke API keys
  dev             serve the API on a PostgreSQL of its own, for trying it out

intake-server <command> --help shows examples.

Settings come from the environment
  DATABASE_URL               postgres://user:password@host:5432/database
  DATABASE_CONNECTIONS_MAX   connections for uploads and reads (10); interactions have three more
  DATABASE_TIMEOUT_MS        a statement that takes longer is ended (30000)
  HOST, PORT                 where to listen (127.0.0.1, 8080)
  TLS_CERT_FILE, TLS_KEY_FILE  certificate and key; then HTTPS is served
  TRUSTED_PROXY              addresses of the proxy that serves HTTPS in front, separated by commas
  REQUESTS_PER_SECOND_MAX    requests a second of an organisation, to each process (100)
  INTERACTIONS_PER_SECOND_MAX  interactions a second of an organisation, likewise (5000)
  RECORDS_PER_SECOND_MAX     records a second of an organisation, likewise (50000)
  RECORDS_PER_REQUEST_MAX    records per upload (5000)
  COURSES_PER_REQUEST_MAX    records per upload of courses (1000)
  BODY_BYTES_MAX             size of a body, decompressed (33554432)
  RECEIPTS_KEPT_DAYS         days that receipts and rejections are kept at least (30)
  LOG_LEVEL                  fatal, error, warn, info, debug, trace or silent (info)`;

const ofCommand: Readonly<Record<string, string>> = {
  serve: `intake-server serve

Serves the API until it is told to stop. SIGTERM finishes what was begun.

  DATABASE_URL=postgres://intake@localhost/intake intake-server serve`,
  migrate: `intake-server migrate

Runs the migrations that the database has not had. Safe to run again, and by several at once.

  DATABASE_URL=postgres://intake@localhost/intake intake-server migrate`,
  organisations: `intake-server organisations create <slug> [--name <name>]
intake-server organisations list [--json]

  intake-server organisations create acme --name "Acme Student Discounts"
  intake-server organisations list`,
  keys: `intake-server keys issue --organisation <slug> [--scope <permission>]... [--json]
intake-server keys list [--organisation <slug>] [--json]
intake-server keys rotate <key-id> [--grace <period>] [--json]
intake-server keys revoke <key-id>

rotate issues a successor and lets the old key go on working for the grace period, 24h unless said; revoke ends a key at
once, for one that is compromised. Both reach every process within 5 seconds. The key is shown once, when it is issued.
Without --scope it may do everything.
Permissions: data:write, data:write:<type>, data:read, interactions:write, interactions:read

  intake-server keys issue --organisation acme
  intake-server keys issue --organisation acme --scope data:write:shops --scope interactions:write
  intake-server keys rotate 0Qm3xYb7ZkA --grace 7d
  intake-server keys revoke 0Qm3xYb7ZkA`,
  dev: `npm run dev

Starts a PostgreSQL of its own below .intake/, migrates it, creates the organisation "demo", and serves the API on
http://127.0.0.1:8080. Ctrl-C stops both; the data stays. PORT chooses another port.`,
};

export function help(command: string): string {
  return ofCommand[command] ?? general;
}

/** A command that was not used as it is meant to be; its message is all that is shown. */
export function commandError(message: string): Error {
  return Object.assign(new Error(message), { code: 'INTAKE_COMMAND' });
}
