// cli/: one file per command of `intake-server`.

import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { confirmRestore, reachesBack, repeatActs, revokeAllKeys } from '../operator/after-restore.ts';
import type { AuditEntry } from '../operator/audit-log.ts';
import { commandError } from './help.ts';
import { operator } from './operator.ts';
import { withPool } from './with-pool.ts';

/** Reopens a restored database after it has revoked again the keys that were revoked since the restored moment. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { audit: { type: 'string' }, 'revoke-all-keys': { type: 'boolean', default: false } },
  });
  const { audit: file, 'revoke-all-keys': all } = values;
  if ((file === undefined) !== all)
    throw commandError(
      'give either --audit <file>, with the output of audit --json --limit 10000, or --revoke-all-keys; intake-server after-restore --help shows how',
    );
  const entries = file === undefined ? [] : await readEntries(file);
  await withPool(async (pool) => {
    const by = operator();
    if (!all && !(await reachesBack(pool, entries)))
      throw commandError(
        `${file} does not reach back to the restored moment; write it with a greater --limit on the old database, or use --revoke-all-keys`,
      );
    if (all) {
      const { keys, tokens } = await revokeAllKeys(pool, by);
      console.log(
        `Revoked ${keys} keys and ${tokens} admin tokens. Issue new ones with keys issue and tokens issue.`,
      );
    } else {
      const done = await repeatActs(pool, by, entries);
      console.log(
        `The log names ${done.revokedKeys} revoked keys, ${done.revokedTokens} revoked admin tokens and ` +
          `${done.suspendedOrganisations} suspended organisations; all are so again.`,
      );
      const lost = [...done.lostKeys, ...done.lostTokens.map((name) => `the admin token ${name}`)];
      if (lost.length > 0) console.log(`Lost with the restore, to be issued anew: ${lost.join(', ')}`);
    }
    await confirmRestore(pool, by);
  });
  console.log('The database gives out keys again.');
}

async function readEntries(file: string): Promise<AuditEntry[]> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw commandError(`${file} cannot be read: ${error.message}`);
  });
  try {
    const entries: unknown = JSON.parse(text);
    if (Array.isArray(entries) && entries.every((entry) => typeof entry?.act === 'string')) return entries;
  } catch {
    // The error below says what to do.
  }
  throw commandError(
    `${file} is no audit log; write it with intake-server audit --json --limit 10000 on the old database`,
  );
}
