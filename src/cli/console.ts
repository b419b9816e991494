import { parseArgs } from 'node:util';
import { limits } from '../limits.ts';
import { issueConsoleLink } from '../operator/audited-actions.ts';
import { commandError } from './arguments/help.ts';
import { operator, organisationNamed } from './arguments/operator.ts';
import { readExpiry } from './arguments/periods.ts';
import { withPool } from './database/with-pool.ts';

export async function run([action, ...args]: string[]): Promise<void> {
  if (action !== 'link')
    throw commandError('console expects link; run intake-server console --help for examples');
  const { values } = parseArgs({
    args,
    options: {
      organisation: { type: 'string' },
      'read-only': { type: 'boolean', default: false },
      expires: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const { organisation: slug, expires, json } = values;
  if (slug === undefined) throw commandError('specify the organisation: console link --organisation <slug>');
  const expiresAt = expires === undefined ? new Date(Date.now() + limits.consoleLinkMs) : readExpiry(expires);
  const link = await withPool(async (pool) => {
    const { organisation_id: organisationId } = await organisationNamed(pool, slug);
    return issueConsoleLink(pool, operator(), { organisationId, isReadOnly: values['read-only'], expiresAt });
  });
  if (json) return console.log(JSON.stringify(link));
  console.error(
    `Opens the console of ${slug}, once, until ${link.expires_at}; intake-server keys revoke ${link.key_id} ends it`,
  );
  console.log(link.path);
}
