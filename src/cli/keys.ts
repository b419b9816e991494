import { parseArgs } from 'node:util';
import { issueKey, rotateKey } from '../keys/issue-key.ts';
import { allPermissions, isPermission } from '../keys/permissions.ts';
import { listApiKeys, revokeApiKey } from '../store/api-keys.ts';
import { findOrganisation, type Organisation } from '../store/organisations.ts';
import type { Pool } from '../store/pool.ts';
import { commandError } from './help.ts';
import { withPool } from './with-pool.ts';

export async function run([action, ...args]: string[]): Promise<void> {
  if (action === 'issue') return issue(args);
  if (action === 'list') return list(args);
  if (action === 'rotate') return rotate(args);
  if (action === 'revoke') return revoke(args);
  throw commandError('keys takes issue, list, rotate or revoke; intake-server keys --help shows how');
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
    for (const { key_id, organisation, permissions, created_at, revoked_at, expires_at } of keys) {
      const state =
        revoked_at !== null ? `revoked ${revoked_at}` : expires_at !== null ? `ends ${expires_at}` : 'active';
      console.log([key_id, organisation, permissions.join(','), created_at, state].join('\t'));
    }
  }
}

async function rotate(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { grace: { type: 'string', default: '24h' }, json: { type: 'boolean', default: false } },
  });
  const keyId = oneKeyId(positionals, 'rotate');
  const graceMs = readDuration(values.grace);
  const successor = await withPool((pool) => rotateKey(pool, keyId, graceMs));
  if (!successor) throw commandError(`there is no key ${keyId} in use; keys list shows them`);
  if (values.json) {
    console.log(
      JSON.stringify({
        key_id: successor.keyId,
        key: successor.key,
        successor_of: keyId,
        grace: values.grace,
      }),
    );
    return;
  }
  console.log(
    `Issued the key ${successor.keyId} as the successor of ${keyId}, which goes on working for ${values.grace}.`,
  );
  console.log(`\n  ${successor.key}\n`);
  console.log('Keep it safe: it is shown this once and stored nowhere.');
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function readDuration(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,4})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit] ?? Number.NaN);
  if (Number.isNaN(ms)) throw commandError(`"${text}" is no period; write it as 24h, 30m, 90s or 7d`);
  return ms;
}

/** The id of a key, and never the key itself, which would stay in the history of the shell. */
function oneKeyId(positionals: readonly string[], action: string): string {
  const [keyId, ...rest] = positionals;
  if (keyId === undefined || rest.length > 0)
    throw commandError(`name one key by its id: keys ${action} <key-id>`);
  if (keyId.startsWith('intake_')) {
    throw commandError('give the id of the key, its part between the underscores, not the key');
  }
  return keyId;
}

async function revoke(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const keyId = oneKeyId(positionals, 'revoke');
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
