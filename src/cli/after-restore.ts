// cli/: the commands of `intake-server`.

import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import {
  confirmRestore,
  listLimited,
  listRetentions,
  reachesBack,
  repeatActs,
  revokeAllKeys,
} from '../operator/after-restore.ts';
import type { AuditEntry } from '../operator/audit-log.ts';
import { type LedgerEntry, repeatErasures } from '../operator/erasure-ledger.ts';
import { type OrganisationLimit, organisationLimits } from '../operator/rules.ts';
import type { Pool } from '../postgres/pool.ts';
import { isUuid } from '../registry/fields.ts';
import { keptTypes } from '../retention/kept-days.ts';
import { commandError } from './arguments/help.ts';
import { operator } from './arguments/operator.ts';
import { withPool } from './database/with-pool.ts';
import { flagOf, keptText } from './organisations.ts';

/** Reopens a restored database after replaying the revocations that were made since the restore point. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      audit: { type: 'string' },
      erasures: { type: 'string' },
      'revoke-all-keys': { type: 'boolean', default: false },
    },
  });
  const { audit: file, 'revoke-all-keys': all } = values;
  if ((file === undefined) !== all)
    throw commandError(
      'use either --audit <file>, with the output of audit --json --limit 10000, or --revoke-all-keys; run intake-server after-restore --help for examples',
    );
  const entries = file === undefined ? [] : await readEntries(file);
  const ledger = values.erasures === undefined ? [] : await readErasures(values.erasures);
  await withPool(async (pool) => {
    const by = operator();
    if (!all && !(await reachesBack(pool, entries)))
      throw commandError(
        `${file} does not reach back to the restored time; write it with --limit 10000, the maximum, on the old database, or use --revoke-all-keys`,
      );
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
    const repeated = await repeatErasures(pool, ledger);
    if (repeated > 0)
      console.log(
        `${repeated} erasures are repeated. Keys work again when serve has hidden their customers.`,
      );
    await confirmRestore(pool, by, repeated > 0);
    if (repeated === 0) console.log('Keys work again in this database.');
  });
}

/** Lists current limits and retention settings, because without the audit log nobody knows which changes were lost. */
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

async function readErasures(file: string): Promise<LedgerEntry[]> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw commandError(`${file} cannot be read: ${error.message}`);
  });
  try {
    const entries: LedgerEntry[] = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
    if (entries.every(({ erasure_id, hash }) => isUuid(erasure_id) && /^[0-9a-f]{32}$/.test(hash)))
      return entries;
  } catch {
    // The error below explains what to do.
  }
  throw commandError(`${file} is not a ledger; write it with intake-server erasures on the old database`);
}

async function readEntries(file: string): Promise<AuditEntry[]> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw commandError(`${file} cannot be read: ${error.message}`);
  });
  try {
    const entries: unknown = JSON.parse(text);
    if (Array.isArray(entries) && entries.every((entry) => typeof entry?.act === 'string')) return entries;
  } catch {
    // The error below explains what to do.
  }
  throw commandError(
    `${file} is not an audit log; write it with intake-server audit --json --limit 10000 on the old database`,
  );
}
