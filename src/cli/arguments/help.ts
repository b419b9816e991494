import { limits } from '../../limits.ts';
import { editDistance, likestFirst, type Setting, settings } from '../../settings.ts';

const general = `intake-server: data ingestion service

Usage: intake-server <command> [options]   (in a checkout: node dist/main.js <command> [options])

Commands
  serve           serve the API
  migrate         bring the database schema up to date
  organisations   create, list, suspend, limit, delete, restore, export and import organisations, and switch their report on or off
  keys            issue, list, rotate and revoke API keys
  tokens          issue, list and revoke tokens of the admin API
  console         make a link that signs somebody in to the console
  top             show the busiest organisations
  audit           show who did what to organisations, keys and tokens
  erasures        write the ledger of erased people, for a restore
  plan            estimate the processes, machines and disks for a load
  after-restore   revoke again what was revoked before the database was restored, and open it
  distribute      spread the tables over the workers of a Citus cluster
  cluster         show the nodes of a Citus cluster and the largest organisations, and move one
  dev             serve the API on a PostgreSQL of its own, for trying it out

intake-server <command> --help shows options and examples
intake-server help settings lists the settings, which come from the environment; DATABASE_URL is the only one that is required
intake-server --version prints the version`;

const ofSettings = `Settings come from the environment. docs/settings.md has the allowed values.

${settingLines()}`;

const ofCommand: Readonly<Record<string, string>> = {
  serve: `intake-server serve

Serves the API until it is stopped. Its settings: intake-server help settings. SIGTERM finishes what was begun and takes no new connections. It needs a login that
is a member of the role intake_serve, and warns of one that may do more. With ADMIN_DATABASE_URL the admin API is served too,
on a port of its own.

  DATABASE_URL=postgres://intake_app:change-me@localhost/intake intake-server serve
  DATABASE_URL=postgres://intake_app:change-me@localhost/intake \\
    ADMIN_DATABASE_URL=postgres://intake_ops:change-me@localhost/intake intake-server serve`,
  migrate: `intake-server migrate

Runs the migrations that the database has not had, as the owner of the tables, makes the views for analysts, and grants the
roles intake_serve, intake_admin and intake_read_all what they need. Safe to run again, and by several at once. Not through
a pooler.

  DATABASE_URL=postgres://intake:change-me@localhost/intake intake-server migrate`,
  organisations: `intake-server organisations create <slug> [--name <name>]
intake-server organisations list [--json]
intake-server organisations suspend <slug>
intake-server organisations resume <slug>
intake-server organisations limit <slug> [--requests-per-second <n>] [--interactions-per-second <n>]
    [--records-per-second <n>] [--bytes-in-flight <n>] [--records-stored <n>] [--bytes-stored <n>] [--json]
intake-server organisations set-report <slug> on|off
intake-server organisations delete <slug> --confirm <slug>
intake-server organisations restore <slug>
intake-server organisations set-retention <slug> [--interactions <days>] [--receipts <days>] [--rejections <days>] [--json]
intake-server organisations export <slug> --to <folder>
intake-server organisations import <slug> --from <folder>

suspend refuses all keys of an organisation with 403, resume ends that. limit sets limits of its own, shows them, and
takes "default" to return to the settings of the service. Where no limit of its own is set, it prints the default: the
setting in the environment of the command. Changes reach every process within 5 seconds. set-report
switches the report on recommendations on or off; it is off by default. --records-stored and --bytes-stored are quotas
of what an organisation may store, interactions included; without them storage is not limited. set-retention sets for how many days an organisation keeps
its interactions, receipts and rejections, such as 90d, and shows it; "off" ends that. What has expired is deleted for good, within
an hour or so. Receipts and rejections can be kept for as long as RECEIPTS_KEPT_DAYS says at most. delete refuses all keys with 410;
restore undoes it, for as many days as DELETED_ORGANISATIONS_KEPT_DAYS of the service says. Then everything of the organisation is
removed, which list shows.

export writes all records, deleted ones too, and all interactions to a folder, and import stores them in another service, in an
organisation that is new or empty. Keys, limits, receipts, rejections, erasures and the audit log do not move. Both continue when
they are run again. They need two logins, like serve with the admin API: DATABASE_URL with that of serve, to read and store, and
ADMIN_DATABASE_URL with that of the other commands, to find the organisation and to log it. import also takes ERASURE_KEYS.

  intake-server organisations create acme --name "Acme Student Discounts"
  intake-server organisations list
  intake-server organisations limit acme --records-per-second 100000
  intake-server organisations set-report acme on
  intake-server organisations set-retention acme --interactions 90d --receipts 14d
  intake-server organisations suspend acme
  intake-server organisations delete acme --confirm acme
  DATABASE_URL=postgres://intake_app:change-me@localhost/intake \\
    ADMIN_DATABASE_URL=postgres://intake_ops:change-me@localhost/intake \\
    intake-server organisations export acme --to acme-export`,
  keys: `intake-server keys issue --organisation <slug> [--scope <permission>]... [--label <text>] [--expires <when>] [--json]
intake-server keys issue --organisation <slug> --browser --origin <origin>... [--label <text>] [--expires <when>] [--json]
intake-server keys list [--organisation <slug>] [--expiring <period>] [--unused] [--json]
intake-server keys rotate <key-id> [--grace <period>] [--expires <when>] [--json]
intake-server keys revoke <key-id>

rotate issues a successor; the old key works for the grace period, 24h by default. revoke ends a key at once, for one that is
compromised. Both reach every process within 5 seconds. The key is shown once, when it is issued. Without --scope it may do
everything but erase people and answer access requests; without --expires, a period or a date, it never expires: a successor does not inherit the expiry of the old key.
list --expiring 30d shows the keys in use that expire within 30 days, --unused those that were never used.
A key that is part of a web page must be a browser key: it only records interactions, only from pages of its origins, and is
limited for each visitor. Every visitor can read it.
Permissions: data:write, data:write:<type>, data:read, interactions:write, interactions:read, and data:erase and data:access,
which a key has only if they are named

  intake-server keys issue --organisation acme
  intake-server keys issue --organisation acme --scope data:write:shops --scope interactions:write
  intake-server keys issue --organisation acme --label "nightly export" --expires 90d
  intake-server keys issue --organisation acme --browser --origin https://shop.example
  intake-server keys list --expiring 30d
  intake-server keys rotate 0Qm3xYb7ZkA --grace 7d --expires 90d
  intake-server keys revoke 0Qm3xYb7ZkA`,
  tokens: `intake-server tokens issue <name> [--read-only] [--expires <when>] [--json]
intake-server tokens list [--json]
intake-server tokens revoke <name>

A token permits the use of the admin API: everything, or with --read-only what only reads. Give one to each person or program:
its name is the actor in the audit log, and is never given twice. The token is shown once, when it is issued. A revoked token
is refused by every process from then on. Without --expires, a period or a date, it never expires.

  intake-server tokens issue deploy --expires 90d
  intake-server tokens issue dashboard --read-only
  intake-server tokens revoke deploy`,
  console: `intake-server console link --organisation <slug> [--read-only] [--expires <when>] [--json]

Makes a link to the console and prints its path; append it to the address of the service. The link works once. With --read-only
its user can change nothing. Access ends after an hour, or when --expires says, a period or a date. To end it at once, revoke
the key that the command names.

  intake-server console link --organisation acme --read-only --expires 1h`,
  top: `intake-server top [--by <measure>] [--minutes <n>] [--limit <n>] [--json]

Shows the busiest organisations of the last minutes: by requests, which is the default, records, interactions, bytes, rejections or
limits_hit, the requests that were refused because of a limit. Each process records its busiest organisations once a minute.

  intake-server top
  intake-server top --by bytes --minutes 60`,
  audit: `intake-server audit [--organisation <slug>] [--limit <n>] [--json]

Shows who did what to organisations, keys and tokens, the newest first, 100 entries by default. The log only grows.

  intake-server audit --organisation acme`,
  erasures: `intake-server erasures

Writes the ledger of erased people, a line of JSON for each hash of an id, to be kept outside the database. after-restore reads
it to erase these people again.

  intake-server erasures > erasures.ndjson`,
  plan: `intake-server plan --records-per-second <n> --interactions-per-second <n> --organisations <n> --retention <days>
    [--records-per-request <n>] [--costs <file>]

Estimates the CPU, processes, connections, memory and disk for a load, and the stage of docs/scaling.md that it needs, from
measured costs, and prints its assumptions. The CPU is a range, because it depends on the machine; with --costs it is one
figure. Retention is for how many days of new data there must be room.
Uploads hold 1,000 records each by default; small ones cost much more CPU for each record. It asks no database. --costs takes
the costs of your own machine, which npm run bench -- costs --save <file> measures in a checkout.

  intake-server plan --records-per-second 500 --interactions-per-second 200 --organisations 50 --retention 365
  intake-server plan --records-per-second 10 --interactions-per-second 0 --organisations 1 --retention 30 \\
    --records-per-request 10
  intake-server plan --records-per-second 500 --interactions-per-second 200 --organisations 50 --retention 365 \\
    --costs costs.json`,
  'after-restore': `intake-server after-restore --audit <file> [--erasures <file>]
intake-server after-restore --revoke-all-keys [--erasures <file>]

A database that PostgreSQL has restored to an earlier moment gives out no keys: those that were revoked since would work
again. --audit does again what the audit log of the database before the restore says was done to keys, tokens and
organisations. If there is no such log, revoke all keys and tokens and issue new ones. Both open the database again.
--erasures erases again the people who were erased since the restored moment: keys work as soon as serve has hidden them.

  intake-server audit --json --limit 10000 > audit.json      (on the old database)
  intake-server erasures > erasures.ndjson                   (on the old database)
  intake-server after-restore --audit audit.json --erasures erasures.ndjson             (on the restored one)`,
  distribute: `intake-server distribute [--shards <n>] [--dry-run]

Spreads the tables over the workers of a Citus cluster, by organisation: all that an organisation has is on one node. Run it as
the owner of the tables, on the coordinator, with all processes stopped; they start again on the same DATABASE_URL. It moves
the rows that are there, can be run again, and continues where it was interrupted. --shards is the number of parts, ${limits.clusterShards} by
default; --dry-run prints the statements and runs none. Tables of later versions are distributed by migrate.

  intake-server distribute --dry-run
  intake-server distribute`,
  cluster: `intake-server cluster [--json]
intake-server cluster move <organisation> <host:port>

Shows the nodes of a Citus cluster with the shards and bytes on each, and the organisations with the most records, each with
its shard and its node. move brings the shard of an organisation to another node while it goes on being written to; the
organisations that share the shard go along.

  intake-server cluster
  intake-server cluster move acme worker-2.internal:5432`,
  dev: `intake-server dev   (in a checkout: npm run dev)

Starts a PostgreSQL of its own below .intake/ in the current folder, migrates it, creates the organisation "demo", and
serves the API on http://127.0.0.1:8080. Ctrl-C stops both; the data stays. PORT chooses another port. A checkout has that
PostgreSQL; the installed package does not, and dev prints the command that installs it.`,
};

/** Undefined if there is no such topic. */
export function help(topic?: string): string | undefined {
  if (topic === undefined) return general;
  if (topic === 'settings') return ofSettings;
  return Object.hasOwn(ofCommand, topic) ? ofCommand[topic] : undefined;
}

export function unknownCommand(name: string): Error {
  const meant = meantName(name, Object.keys(ofCommand));
  const suggestion = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return commandError(`there is no command "${name}".${suggestion} intake-server --help lists them`);
}

/** The name that was probably meant: within two letters, or with the same beginning. */
function meantName(given: string, names: readonly string[]): string | undefined {
  const [likest] = likestFirst(given.slice(0, 100), names);
  if (likest === undefined || given === '') return undefined;
  return editDistance(given.slice(0, 100), likest) <= 2
    ? likest
    : names.find((name) => name.startsWith(given));
}

/** For a command that takes no arguments. The message does not repeat what was given: it may hold a password. */
export function refuseArguments(command: string, [first]: readonly string[]): void {
  if (first === undefined) return;
  const setting = /^--([a-z-]+)/.exec(first)?.[1]?.replaceAll('-', '_').toUpperCase();
  const isSetting = Object.values<Setting>(settings).some(([variable]) => variable === setting);
  const program = command === 'dev' ? 'npm run dev' : `intake-server ${command}`;
  throw commandError(
    `${command} takes no arguments; its settings come from the environment: ` +
      (isSetting ? `${setting}=... ${program}` : 'intake-server help settings lists them'),
  );
}

/** A misuse of a command; only its message is shown. */
export function commandError(message: string): Error {
  return Object.assign(new Error(message), { code: 'INTAKE_COMMAND' });
}

/** Each setting with its purpose and its default. */
function settingLines(): string {
  const width = Math.max(...Object.values<Setting>(settings).map(([variable]) => variable.length));
  return Object.values<Setting>(settings)
    .map(
      ([variable, { fallback }, purpose]) =>
        `  ${variable.padEnd(width)}  ${plain(purpose)} (${plain(String(fallback))})`,
    )
    .join('\n');
}

/** Markdown as plain text: links become their text. */
function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
}
