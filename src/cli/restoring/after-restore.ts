// cli/restoring/: commands for backing up the logs and for reopening a restored database.

import { parseArgs } from 'node:util';
import {
  confirmRestore,
  isOlderLog,
  listLimited,
  listRetentions,
  reachesBack,
  repeatActs,
  restoredTime,
  revokeAllKeys,
} from '../../operator/after-restore.ts';
import type { AuditEntry } from '../../operator/audit-log.ts';
import type { Saved } from '../../operator/batches.ts';
import { compareLedger, type Lacking, repeatErasures } from '../../operator/erasure-ledger.ts';
import { findOrganisation } from '../../operator/organisations.ts';
import { type OrganisationLimit, organisationLimits } from '../../operator/rules.ts';
import type { Pool } from '../../postgres/pool.ts';
import { keptTypes } from '../../retention/kept-days.ts';
import { commandError } from '../arguments/help.ts';
import { operator } from '../arguments/operator.ts';
import { withPool } from '../database/with-pool.ts';
import { flagOf, keptText } from '../organisations.ts';
import { auditLogIn, ledgerIn, openSaved, type SavedLedger } from './saved-files.ts';

export async function run(args: string[]): Promise<void> {
  const { audit: file, erasures, removed, 'revoke-all-keys': all, ...flags } = readFlags(args);
  const withoutErasures = flags['without-erasures'];
  await using files = new AsyncDisposableStack();
  const entries = file === undefined ? [] : await auditLogIn(files.use(await openSaved(file)), file);
  const ledger =
    erasures === undefined ? undefined : await ledgerIn(files.use(await openSaved(erasures)), erasures);
  await withPool(async (pool) => {
    const by = operator();
    if (file !== undefined) await checkLog(pool, file, entries);
    if (erasures !== undefined && ledger)
      await checkLedger(pool, { file: erasures, ledger, entries, removed, withoutErasures });
    if (all) {
      const { keys, tokens } = await revokeAllKeys(pool, by);
      console.log(
        `Revoked ${keys} keys and ${tokens} admin tokens. Issue new ones with keys issue and tokens issue.`,
      );
      await printLimited(pool);
    } else {
      const done = await repeatActs(pool, by, entries);
      console.log(
        `The log contains ${done.revokedKeys} revoked keys, ${done.revokedTokens} revoked admin tokens and ` +
          `${done.suspendedOrganisations} suspended organisations, which were applied again.`,
      );
      if (done.deletedOrganisations > 0)
        console.log(`${done.deletedOrganisations} organisations were deleted again.`);
      const lost = [...done.lostKeys, ...done.lostTokens.map((name) => `the admin token ${name}`)];
      if (lost.length > 0) console.log(`Keys and tokens that have to be issued again: ${lost.join(', ')}`);
      const { lostLimits, retentions, lakes } = done;
      if (lostLimits.size > 0) console.log('Limits that have to be set again:');
      for (const [slug, limits] of lostLimits) console.log(limitCommand(slug, limits));
      if (retentions > 0) console.log(`The retention of ${retentions} organisations was set again.`);
      if (lakes > 0)
        console.log(`The lakes of ${lakes} organisations were switched as recorded in the audit log.`);
    }
    const repeated = await repeatErasures(pool, ledger ?? []);
    if (repeated > 0) console.log(`${repeated} erasures are repeated.`);
    if (withoutErasures)
      console.log('Erasures since the restored time are not repeated: these people are stored again.');
    const { imported, looksForPeople, place } = await confirmRestore(pool, by, {
      entries,
      withoutErasures,
      ledgerWrittenAt: ledger?.writtenAt,
    });
    if (imported > 0) console.log(`${imported} entries were added to the audit log.`);
    console.log(
      looksForPeople
        ? 'Keys work again when serve has hidden the customers of repeated erasures.'
        : 'Keys work again in this database.',
    );
    if (place)
      console.log(
        `The lakes at ${place.url} belong to the database before the restore. If this database replaces it, set LAKE_URL to ` +
          `that place and run intake-server lake --take-over ${place.fingerprint}. Otherwise set LAKE_URL to another place.`,
      );
  });
}

function readFlags(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      audit: { type: 'string' },
      erasures: { type: 'string' },
      removed: { type: 'string', multiple: true, default: [] },
      'revoke-all-keys': { type: 'boolean', default: false },
      'without-erasures': { type: 'boolean', default: false },
    },
  });
  const { audit: file, erasures, removed } = values;
  if ((file === undefined) !== values['revoke-all-keys'])
    throw commandError(
      'use either --audit <file>, with the audit log of the old database, or --revoke-all-keys; run intake-server after-restore --help for examples',
    );
  if (erasures === undefined && !values['without-erasures'])
    throw commandError(
      'use either --erasures <file>, with the ledger of erased people of the old database, or --without-erasures, which lets people who were erased since the restored time stay; run intake-server after-restore --help for examples',
    );
  if (removed.length > 0 && erasures === undefined)
    throw commandError('--removed is only for --erasures, whose ledger lacks removed organisations');
  return values;
}

/** All current settings are listed, because without the audit log nobody knows which changes were lost. */
async function printLimited(pool: Pool): Promise<void> {
  console.log(
    'Limits that were set after the restored time are lost. These organisations have their own limits:',
  );
  const limited = await listLimited(pool);
  for (const { slug, ...own } of limited) console.log(limitCommand(String(slug), own));
  if (limited.length === 0) console.log('  none');
  const retentions = await listRetentions(pool);
  if (retentions.length > 0)
    console.log(
      'Restored retention settings delete data from now on. Turn off those that had been turned off:',
    );
  for (const { slug, ...own } of retentions) console.log(retentionCommand(String(slug), own));
}

function limitCommand(slug: string, own: Readonly<Record<string, unknown>>): string {
  const flags = (Object.keys(organisationLimits) as OrganisationLimit[])
    .filter((name) => name in own)
    .map((name) => `--${flagOf(name)} ${own[name] ?? 'default'}`);
  return `  intake-server organisations limit ${slug} ${flags.join(' ')}`;
}

function retentionCommand(slug: string, own: Readonly<Record<string, unknown>>): string {
  const flags = keptTypes
    .filter((type) => `${type}_kept_days` in own)
    .map((type) => `--${type} ${keptText(own[`${type}_kept_days`] as number | null)}`);
  return `  intake-server organisations set-retention ${slug} ${flags.join(' ')}`;
}

interface Ledger {
  readonly file: string;
  readonly ledger: SavedLedger;
  /** Of the old database's audit log. */
  readonly entries: Saved<AuditEntry>;
  readonly removed: readonly string[];
  readonly withoutErasures: boolean;
}

async function checkLog(pool: Pool, file: string, entries: Saved<AuditEntry>): Promise<void> {
  if (!(await reachesBack(pool, entries)))
    throw commandError(
      `${file} does not reach back to the restored time; write it with an earlier --since on the old database, or use --revoke-all-keys`,
    );
  if (await isOlderLog(pool, entries))
    throw commandError(
      `${file} is older than the restored time, because it lacks acts from before the last backup that this database knows; use a newer one of the old database, or --revoke-all-keys instead`,
    );
}

/**
 * A ledger that lacks erasures of this database is older than the restored time, or another database's. One from before that
 * time shows nobody who was erased after it.
 */
async function checkLedger(
  pool: Pool,
  { file, ledger, entries, removed, withoutErasures }: Ledger,
): Promise<void> {
  for (const slug of removed)
    if (!(await findOrganisation(pool, slug)))
      throw commandError(`--removed names ${slug}, which is not an organisation of this database`);
  const removedIds = new Set<string>();
  for await (const { act, details } of entries)
    if (act === 'organisation.remove') removedIds.add(String(details.organisation_id));
  const { true: gone = [], false: lacking = [] } = Object.groupBy(
    await compareLedger(pool, ledger),
    ({ organisation_id, slug }) => `${removedIds.has(organisation_id) || removed.includes(slug)}` as const,
  );
  if (gone.length > 0)
    console.log(
      `The ledger lacks erasures of removed organisations: ${slugsOf(gone)}. Restore one of them only with a ledger from before its removal.`,
    );
  const { writtenAt } = ledger;
  const restoredAt = await restoredTime(pool);
  const isFromBefore = writtenAt !== undefined && restoredAt !== undefined && writtenAt < restoredAt;
  if (withoutErasures) {
    if (isFromBefore || lacking.length > 0) return;
    throw commandError(
      `${file} is not older than the restored time; leave out --without-erasures, which lets people who were erased since then stay`,
    );
  }
  if (isFromBefore)
    throw commandError(
      `${file} is from ${writtenAt.toISOString()}, but this database was restored to ${restoredAt.toISOString()} or later, so it does not show ` +
        'who was erased since; use a newer one of the old database, or add --without-erasures, which lets these people stay',
    );
  if (lacking.length === 0) return;
  const isOlder = lacking.some(({ isPartial }) => isPartial);
  throw commandError(
    `${file} is older than the restored time${isOlder ? '' : " or another database's"}, ` +
      `because it lacks erasures that this database has, of ${slugsOf(lacking)}; use a newer one of the old database. ` +
      `If the old database had removed an organisation, or was removing it, add --removed with its slug`,
  );
}

function slugsOf(organisations: readonly Lacking[]): string {
  const slugs = organisations.slice(0, 10).map(({ slug }) => slug);
  if (organisations.length > 10) slugs.push(`${organisations.length - 10} others`);
  return slugs.join(', ');
}
