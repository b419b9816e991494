import { parseArgs } from 'node:util';
import { limits } from '../limits.ts';
import { listAuditEntries } from '../operator/audit-log.ts';
import { commandError } from './arguments/help.ts';
import { headerOf, organisationNamed } from './arguments/operator.ts';
import { withPool } from './database/with-pool.ts';

/** Shows the audit log of organisations and keys, newest first. */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      organisation: { type: 'string' },
      limit: { type: 'string', default: String(limits.auditEntriesDefault) },
      json: { type: 'boolean', default: false },
    },
  });
  const count = /^\d{1,5}$/.test(values.limit) ? Number(values.limit) : 0;
  if (count < 1 || count > limits.auditEntriesMax)
    throw commandError(`--limit must be a whole number from 1 to ${limits.auditEntriesMax}`);
  const { organisation: slug } = values;
  const entries = await withPool(async (pool) => {
    const organisation = slug === undefined ? null : await organisationNamed(pool, slug);
    return listAuditEntries(pool, organisation?.organisation_id ?? null, count);
  });
  if (values.json) console.log(JSON.stringify(entries));
  else {
    console.log(headerOf(['at', 'actor', 'act', 'organisation', 'key id', 'details']));
    for (const { at, actor, act, organisation, key_id, details } of entries) {
      console.log([at, actor, act, organisation ?? '-', key_id ?? '-', JSON.stringify(details)].join('\t'));
    }
  }
}
