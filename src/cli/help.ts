const general = `intake-server: data ingestion service

Usage: intake-server <command> [options]   (in a checkout: node dist/main.js <command> [options])

Commands
  serve           serve the API
  migrate         bring the database schema up to date
  organisations   create, list, suspend, resume and limit organisations
  keys            issue, list, rotate and revoke API keys
  audit           show who did what to organisations and keys
  dev             serve the API on a PostgreSQL of its own, for trying it out

intake-server <command> --help shows examples.

Settings come from the environment
  DATABASE_URL               postgres://user:password@host:5432/database; to another machine with ?sslmode=verify-full
  DATABASE_CONNECTIONS_MAX   connections for uploads and reads (10); interactions have three more, keys too
  DATABASE_TIMEOUT_MS        a statement that takes longer is ended (30000)
  HOST, PORT                 where to listen (127.0.0.1, 8080)
  TLS_CERT_FILE, TLS_KEY_FILE  certificate and key; then HTTPS is served, and a new pair is used once it is there
  TRUSTED_PROXY              addresses of the proxy that serves HTTPS in front, separated by commas
  ADMIN_TOKEN                at least 32 characters; then the admin API is served, to whoever has the token
  ADMIN_HOST, ADMIN_PORT     where it listens (127.0.0.1, 8081)
  ADMIN_DATABASE_URL         the role it works as (DATABASE_URL)
  REDIS_URL                  redis://host:6379; then all processes count the limits of an organisation together
  REQUESTS_PER_SECOND_MAX    requests a second of an organisation that has no limit of its own (100)
  INTERACTIONS_PER_SECOND_MAX  interactions a second, likewise (5000)
  RECORDS_PER_SECOND_MAX     records a second, likewise (50000)
  BYTES_IN_FLIGHT_PER_ORGANISATION_MAX  bytes of bodies at once in a process, likewise (201326592)
  BYTES_IN_FLIGHT_MAX        the same for all organisations together (268435456)
  FAILED_KEYS_PER_MINUTE_MAX  attempts with a wrong key from one address (120)
  RECORDS_PER_REQUEST_MAX    records per upload (5000)
  COURSES_PER_REQUEST_MAX    records per upload of courses (1000)
  BODY_BYTES_MAX             size of a body, decompressed (33554432)
  HEADERS_TIMEOUT_MS         until the headers of a request are there (20000)
  REQUEST_TIMEOUT_MS         until all of a request is there (120000)
  IDLE_TIMEOUT_MS            for a connection on which nothing moves (180000)
  CONNECTIONS_MAX            connections at once (15000)
  STOP_TIMEOUT_MS            after SIGTERM, to finish what was begun (25000)
  RECEIPTS_KEPT_DAYS         days that receipts and rejections are kept at least (30)
  LOG_LEVEL                  fatal, error, warn, info, debug, trace or silent (info)`;

const ofCommand: Readonly<Record<string, string>> = {
  serve: `intake-server serve

Serves the API until it is told to stop. SIGTERM finishes what was begun and refuses what is new. It needs a login that
is a member of the role intake_serve, and warns of one that may do more. With ADMIN_TOKEN the admin API is served too, on
a port of its own.

  DATABASE_URL=postgres://intake_app@localhost/intake intake-server serve
  ADMIN_TOKEN=$(openssl rand -hex 32) ADMIN_DATABASE_URL=postgres://intake@localhost/intake intake-server serve`,
  migrate: `intake-server migrate

Runs the migrations that the database has not had, as the owner of the tables, and grants the roles intake_serve and
intake_admin what they need. Safe to run again, and by several at once.

  DATABASE_URL=postgres://intake@localhost/intake intake-server migrate`,
  organisations: `intake-server organisations create <slug> [--name <name>]
intake-server organisations list [--json]
intake-server organisations suspend <slug>
intake-server organisations resume <slug>
intake-server organisations limit <slug> [--requests-per-second <n>] [--interactions-per-second <n>]
    [--records-per-second <n>] [--bytes-in-flight <n>] [--json]

suspend refuses all keys of an organisation with 403, resume ends that. limit sets limits of its own, shows them, and
takes "default" to go back to the settings of the service. All of it reaches every process within 5 seconds.

  intake-server organisations create acme --name "Acme Student Discounts"
  intake-server organisations list
  intake-server organisations limit acme --records-per-second 100000
  intake-server organisations suspend acme`,
  keys: `intake-server keys issue --organisation <slug> [--scope <permission>]... [--label <text>] [--expires <when>] [--json]
intake-server keys list [--organisation <slug>] [--json]
intake-server keys rotate <key-id> [--grace <period>] [--json]
intake-server keys revoke <key-id>

rotate issues a successor and lets the old key go on working for the grace period, 24h unless said; revoke ends a key at
once, for one that is compromised. Both reach every process within 5 seconds. The key is shown once, when it is issued.
Without --scope it may do everything; without --expires, a period or a date, it does not end.
Permissions: data:write, data:write:<type>, data:read, interactions:write, interactions:read

  intake-server keys issue --organisation acme
  intake-server keys issue --organisation acme --scope data:write:shops --scope interactions:write
  intake-server keys issue --organisation acme --label "nightly export" --expires 90d
  intake-server keys rotate 0Qm3xYb7ZkA --grace 7d
  intake-server keys revoke 0Qm3xYb7ZkA`,
  audit: `intake-server audit [--organisation <slug>] [--limit <n>] [--json]

Shows who did what to organisations and keys, the newest first, 100 entries unless said. The log only grows.

  intake-server audit --organisation acme`,
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
