import { limits } from '../../limits.ts';
import {
  advancedSettings,
  editDistance,
  neededSettings,
  type Setting,
  settings,
  sortBySimilarity,
} from '../../settings.ts';

const general = `intake-server: data ingestion service

Usage: intake-server <command> [options]   (in a checkout: node dist/main.js <command> [options])

Commands
  serve           serve the API
  lake            write the data of organisations with a lake to files
  migrate         bring the database schema up to date
  organisations   create, list, suspend, limit, delete, restore, export and import organisations, and turn their report or lake on or off
  keys            issue, list, rotate and revoke API keys
  tokens          issue, list and revoke tokens of the admin API
  console         create a link that signs somebody in to the console
  top             show the busiest organisations
  audit           show who did what to organisations, keys and tokens
  erasures        write the ledger of erased people, for use after a restore
  backup-log      write the audit log and the ledger of erased people to a folder, for use after a restore
  after-restore   repeat the revocations that a restore of the database has undone, and let keys work again

intake-server <command> --help shows options and examples, and intake-server --version the version
intake-server --help --all also lists the commands for a Citus cluster
intake-server help settings lists the settings, which come from the environment; DATABASE_URL is the only one that is required`;

const ofCluster = `

Commands for a Citus cluster
  distribute      spread the tables over the workers
  cluster         show the nodes and the largest organisations, or move an organisation`;

const ofSettings = `Settings come from the environment. docs/operating/settings.md has the allowed values.

Needed
${linesOf(neededSettings)}

Advanced
${linesOf(advancedSettings)}`;

const ofCommand: Readonly<Record<string, string>> = {
  serve: `intake-server serve

Serves the API until it is stopped. intake-server help settings lists its settings. On SIGTERM it finishes requests in progress
and accepts no new connections. It needs a login that is a member of the role intake_serve, and warns if the login has more
privileges. With ADMIN_DATABASE_URL it also serves the admin API, on a separate port.

  DATABASE_URL=postgres://intake_app:change-me@localhost/intake intake-server serve
  DATABASE_URL=postgres://intake_app:change-me@localhost/intake \\
    ADMIN_DATABASE_URL=postgres://intake_ops:change-me@localhost/intake intake-server serve`,
  lake: `intake-server lake
intake-server lake --take-over <id>

Writes the data of every organisation with a lake to files under LAKE_URL, until it is stopped. There is a Delta table for each
record type and one for interactions, in a folder named after the id of the organisation. The command copies the stored data and
then follows the change log. Several processes divide the organisations among themselves. It needs the login of serve.
organisations set-lake turns on the lake of an organisation.

The first process marks LAKE_URL as the place of its database. lake and serve refuse the place of another database, and a place
without the marker of their own. A database that was copied, restored, or moved or upgraded to a new server counts as another one.
--take-over makes the place this database's own and ends. It takes the id of the database that the place belongs to, or "empty".

  DATABASE_URL=postgres://intake_app:change-me@localhost/intake LAKE_URL=file:///srv/lake intake-server lake
  DATABASE_URL=postgres://intake_app:change-me@localhost/intake LAKE_URL=s3://bucket/lake intake-server lake`,
  migrate: `intake-server migrate

Runs pending migrations, as the owner of the tables, creates the views for analysts, and grants the roles intake_serve,
intake_admin and intake_read_all their privileges. It is safe to run again, also several times in parallel. It does not work
through a pooler. On a Citus cluster, connect to the coordinator; tables of a new version are distributed too. distribute and
cluster are the commands for a cluster. The views for analysts are deprecated: 0.3.0 removes them.

  DATABASE_URL=postgres://intake:change-me@localhost/intake intake-server migrate`,
  organisations: `intake-server organisations create <slug> [--name <name>]
intake-server organisations list [--json]
intake-server organisations suspend <slug>
intake-server organisations resume <slug>
intake-server organisations limit <slug> [--requests-per-second <n>] [--interactions-per-second <n>]
    [--records-per-second <n>] [--bytes-in-flight <n>] [--records-stored <n>] [--bytes-stored <n>] [--json]
intake-server organisations set-report <slug> on|off
intake-server organisations set-lake <slug> on|off
intake-server organisations delete <slug> --confirm <slug>
intake-server organisations restore <slug>
intake-server organisations set-retention <slug> [--interactions <days>] [--receipts <days>] [--rejections <days>] [--json]
intake-server organisations export <slug> --to <folder>
intake-server organisations import <slug> --from <folder>

suspend makes all keys of an organisation fail with 403, and resume undoes that. limit sets the organisation's own limits and shows
them; "default" returns to the settings of the service. For a limit that is not set, it names the setting of the service that applies. --records-stored and --bytes-stored are quotas, which include interactions; by default, storage is not limited. Changes take
effect in every process within 5 seconds.

set-report turns the report on recommendations on or off; it is off by default. set-lake does the same for the files that
intake-server lake writes; off deletes the files.

set-retention sets and shows how long an organisation keeps its interactions, receipts and rejections, such as 90d; "off" removes
the setting. Expired data is permanently deleted within about an hour. Receipts and rejections can be kept for RECEIPTS_KEPT_DAYS
at most.

delete makes all keys fail with 410. restore undoes it for as long as DELETED_ORGANISATIONS_KEPT_DAYS of the service allows. After
that, all data of the organisation is removed, and list shows the progress.

export writes all records, including deleted ones, and all interactions to a folder, and import stores them in another service, in
a new or empty organisation. Keys, limits, receipts, rejections, erasures and the audit log do not move. If a command
is interrupted, run it again to continue. Both need two logins, like serve with the admin API: DATABASE_URL with the login of serve,
to read and store, and ADMIN_DATABASE_URL with the login of the other commands, to find the organisation and to log the move.
import also needs ERASURE_KEYS.

  intake-server organisations create acme --name "Acme Student Discounts"
  intake-server organisations list
  intake-server organisations limit acme --records-per-second 100000
  intake-server organisations set-report acme on
  intake-server organisations set-lake acme on
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

rotate issues a successor, and the old key works for the grace period, 24h by default. revoke ends a key immediately, for example if
it is compromised. Both take effect in every process within 5 seconds. A key is shown once, when it is issued. Without --scope it
has all permissions except erasing people and answering access requests. --expires takes a period or a date; without it, a key never
expires, because a successor does not inherit the expiry of the old key. list --expiring 30d shows the keys in use that expire
within 30 days, and list --unused shows the keys that were never used.
A key in a web page must be a browser key: it only records interactions, only from pages of its origins, and is limited per
visitor. Every visitor can read it.
Permissions: data:write, data:write:<type>, data:read, interactions:write, interactions:read, and data:erase and data:access,
which a key has only if --scope lists them

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

A token gives full access to the admin API or, with --read-only, read access. Issue one to each person or program, because its name
is the actor in the audit log. Names are never reused. The token is shown once, when it is issued. A revoked token stops working
immediately. --expires takes a period or a date; without it, a token never expires.

  intake-server tokens issue deploy --expires 90d
  intake-server tokens issue dashboard --read-only
  intake-server tokens revoke deploy`,
  console: `intake-server console link --organisation <slug> [--read-only] [--expires <when>] [--json]

Creates a link to the console and prints its path; append it to the address of the service. The link works once. With --read-only,
its user cannot change anything. Access ends after an hour, or as specified with --expires (a period or a date). To end it
immediately, revoke the key that the command prints.

  intake-server console link --organisation acme --read-only --expires 1h`,
  top: `intake-server top [--by <measure>] [--minutes <n>] [--limit <n>] [--json]

Shows the busiest organisations of the last minutes: by requests, which is the default, records, interactions, bytes, rejections or
limits_hit, the requests that were refused because of a limit. Each process records its busiest organisations once a minute.

  intake-server top
  intake-server top --by bytes --minutes 60`,
  audit: `intake-server audit [--organisation <slug>] [--actor <name>] [--action <action>] [--since <when>] [--until <when>]
    [--limit <n>] [--json]

Shows who did what to organisations, keys and tokens, the newest first: 100 entries by default, or all since --since. --since and
--until take a period before now, a day or a date-time. --action takes an action such as key.revoke, or key for all of them.
--json prints a line of JSON for each entry. Entries are never changed; the one for console links counts the links of a day.

  intake-server audit --organisation acme
  intake-server audit --actor token:deploy --action key --since 30d
  intake-server audit --json --since 2026-11-01 > audit.ndjson`,
  erasures: `intake-server erasures

Writes the ledger of erased people, with a line of JSON for each hash of an id, and at the end their number. Keep it outside the
database. after-restore reads it to erase these people again. backup-log writes it to a file.

  intake-server erasures > erasures.ndjson`,
  'backup-log': `intake-server backup-log --to <folder>

Writes the audit log to audit.ndjson and the ledger of erased people to erasures.ndjson, for after-restore. Run it from a timer, and
keep the folder outside the database server. It replaces each file only by a complete one, and never one with entries or erasures
that the database lacks, as a restored database does. Let nothing else write to the folder.

  intake-server backup-log --to /backup/intake-log`,
  'after-restore': `intake-server after-restore --audit <file> --erasures <file> [--removed <slug>]...
intake-server after-restore --revoke-all-keys --without-erasures

In a database that was restored to an earlier time, no key works, because keys that were revoked since then would work again, and
people who were erased since then are back.
--audit repeats the actions on keys, tokens and organisations from the audit log of the old database, and adds the entries that the
restored log lacks. Without that log, --revoke-all-keys revokes all keys and tokens, so that you can issue new ones.
--erasures repeats the erasures since the restored time from the ledger of erased people. Keys then work as soon as serve has hidden
those people. Without a ledger, --without-erasures lets these people stay. A ledger that lacks erasures of this database, or is from
before the restored time, is refused without --without-erasures.
An organisation that the old database had removed is an exception: the audit log names it, or --removed does.
If there are lakes, it prints the command with which this database takes over their place.

  intake-server backup-log --to backup      (on the old database; its timer has written these files too)
  intake-server after-restore --audit backup/audit.ndjson --erasures backup/erasures.ndjson      (on the restored database)`,
  distribute: `intake-server distribute [--shards <n>] [--dry-run]

Spreads the tables over the workers of a Citus cluster, by organisation: all data of an organisation is on one node. Run it as the
owner of the tables, on the coordinator, with all processes stopped; afterwards start them with the same DATABASE_URL. It moves the
existing rows, can be run again, and continues where it was interrupted. --shards is the number of shards, ${limits.clusterShards} by default;
--dry-run prints the statements without running them. migrate distributes the tables of later versions.

  intake-server distribute --dry-run
  intake-server distribute`,
  cluster: `intake-server cluster [--json]
intake-server cluster move <organisation> <host:port>

Shows the nodes of a Citus cluster with the shards and bytes on each, and the organisations with the most records, each with
its shard and its node. move moves the shard of an organisation to another node, together with the organisations that share the
shard. Writes continue during the move.

  intake-server cluster
  intake-server cluster move acme worker-2.internal:5432`,
};

export function help(topic?: string): string | undefined {
  if (topic === undefined) return general;
  if (topic === '--all') return general + ofCluster;
  if (topic === 'settings') return ofSettings;
  return Object.hasOwn(ofCommand, topic) ? ofCommand[topic] : undefined;
}

export function unknownCommand(name: string): Error {
  const meant = meantName(name, Object.keys(ofCommand));
  const suggestion = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return commandError(`there is no command "${name}".${suggestion} intake-server --help lists them`);
}

function meantName(given: string, names: readonly string[]): string | undefined {
  const [closest] = sortBySimilarity(given.slice(0, 100), names);
  if (closest === undefined || given === '') return undefined;
  return editDistance(given.slice(0, 100), closest) <= 2
    ? closest
    : names.find((name) => name.startsWith(given));
}

/** The message does not repeat the input, which may contain a password. */
export function refuseArguments(command: string, [first]: readonly string[]): void {
  if (first === undefined) return;
  const setting = /^--([a-z-]+)/.exec(first)?.[1]?.replaceAll('-', '_').toUpperCase();
  const isSetting = Object.values<Setting>(settings).some(([variable]) => variable === setting);
  throw commandError(
    `${command} takes no arguments; its settings come from the environment: ` +
      (isSetting ? `${setting}=... intake-server ${command}` : 'intake-server help settings lists them'),
  );
}

/** For misuse of a command. The user sees only the message. */
export function commandError(message: string): Error {
  return Object.assign(new Error(message), { code: 'INTAKE_COMMAND' });
}

function linesOf(some: Readonly<Record<string, Setting>>): string {
  const width = Math.max(...Object.values<Setting>(settings).map(([variable]) => variable.length));
  return Object.values(some)
    .map(
      ([variable, { fallback }, purpose]) =>
        `  ${variable.padEnd(width)}  ${plain(purpose)} (${plain(String(fallback))})`,
    )
    .join('\n');
}

function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
}
