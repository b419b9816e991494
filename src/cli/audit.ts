// cli/: the commands of `intake-server`.

import { parseArgs } from 'node:util';
import { limits } from '../limits.ts';
import { type AuditEntry, readAuditLog } from '../operator/audit-log.ts';
import { commandError } from './arguments/help.ts';
import { headerOf, organisationNamed, writeOut } from './arguments/operator.ts';
import { readMoment } from './arguments/periods.ts';
import { withPool } from './database/with-pool.ts';

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      organisation: { type: 'string' },
      actor: { type: 'string' },
      action: { type: 'string' },
      since: { type: 'string' },
      until: { type: 'string' },
      limit: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const { organisation: slug, actor, action, json } = values;
  const since = values.since === undefined ? undefined : readMoment('since', values.since);
  const until = values.until === undefined ? undefined : readMoment('until', values.until);
  const countMax = countOf(values.limit, since !== undefined);
  await withPool(async (pool) => {
    const organisation = slug === undefined ? undefined : await organisationNamed(pool, slug);
    const filter = { organisationId: organisation?.organisation_id, actor, action, since, until };
    const header = json ? [] : [headerOf(['at', 'actor', 'act', 'organisation', 'key id', 'details'])];
    for await (const entries of readAuditLog(pool, filter, countMax))
      await writeLines([
        ...header.splice(0),
        ...entries.map(json ? (entry) => JSON.stringify(entry) : lineOf),
      ]);
    await writeLines(header);
  });
}

async function writeLines(lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await writeOut(`${lines.join('\n')}\n`);
}

/** With a start, all entries since then are shown. */
function countOf(limit: string | undefined, hasStart: boolean): number {
  if (limit === undefined) return hasStart ? Number.POSITIVE_INFINITY : limits.auditEntriesDefault;
  const count = /^\d{1,12}$/.test(limit) ? Number(limit) : 0;
  if (count < 1) throw commandError('--limit must be a whole number from 1');
  return count;
}

function lineOf({ at, actor, act, organisation, key_id, details }: AuditEntry): string {
  return [at, actor, act, organisation ?? '-', key_id ?? '-', JSON.stringify(details)].join('\t');
}
