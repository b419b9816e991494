import { parseArgs } from 'node:util';
import { issueKey } from '../keys/issue-key.ts';
import { allPermissions, isPermission } from '../keys/permissions.ts';
import { listApiKeys, revokeApiKey } from '../store/api-keys.ts';
import { findOrganisation, type Organisation } from '../store/organisations.ts';
import type { Pool } from '../store/pool.ts';
import { commandError } from './help.ts';
import { withPool } from './with-pool.ts';

export async function run([action, ...args]: string[]): Promise<void> {
  if (action === 'issue') return issue(args);
  if (action === 'list') return list(args);
  if (action === 'revoke') return revoke(args);
  throw commandError('keys takes issue, list or revoke; intake-server keys --help shows how');
}

async function issue(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      organisation: { type: 'string' },
      scope: { type: 'string', multiple: true, default: [...allPermissions] },
      json: { type: 'boolean', default: false },
    },
  });
  const { organisation: slug, scope: permissions } = values;
  if (slug === undefined) throw commandError('say for whom: keys issue --organisation <slug>');
  const unknown = permissions.find((permission) => !isPermission(permission));
  if (unknown !== undefined) {
    throw commandError(
      `"${unknown}" is no permission; use ${allPermissions.join(', ')} or data:write:<type>`,
    );
  }
  const issued = await withPool(async (pool) => {
    const { organisation_id } = await organisationNamed(pool, slug);
    return issueKey(pool, organisation_id, permissions);
  });
  if (values.json) {
    console.log(JSON.stringify({ key_id: issued.keyId, key: issued.key, organisation: slug, permissions }));
    return;
  }
  console.log(`Issued the key ${issued.keyId} for ${slug}: ${permissions.join(', ')}`);
  console.log(`\n  ${issued.key}\n`);
  console.log('Keep it safe: it is shown this once and stored nowhere.');
}

async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { organisation: { type: 'string' }, json: { type: 'boolean', default: false } },
  });
  const { organisation: slug } = values;
  const keys = await withPool(async (pool) => {
    const organisation = slug === undefined ? null : await organisationNamed(pool, slug);
    return listApiKeys(pool, organisation?.organisation_id ?? null);
  });
  if (values.json) console.log(JSON.stringify(keys));
  else {
    for (const { key_id, organisation, permissions, created_at, revoked_at } of keys) {
      const state = revoked_at === null ? 'active' : `revoked ${revoked_at}`;
      console.log([key_id, organisation, permissions.join(','), created_at, state].join('\t'));
    }
  }
}

async function revoke(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const [keyId, ...rest] = positionals;
  if (keyId === undefined || rest.length > 0)
    throw commandError('name one key by its id: keys revoke <key-id>');
  if (keyId.startsWith('intake_'))
    throw commandError('give the id of the key, its part between the underscores, not the key');
  if (!(await withPool((pool) => revokeApiKey(pool, keyId)))) {
    throw commandError(`there is no key ${keyId}; keys list shows them`);
  }
  console.log(`Revoked the key ${keyId}.`);
}

async function organisationNamed(pool: Pool, slug: string): Promise<Organisation> {
  const organisation = await findOrganisation(pool, slug);
  if (!organisation) throw commandError(`there is no organisation "${slug}"; organisations list shows them`);
  return organisation;
}
