import { parseArgs } from 'node:util';
import { keyCursor, type ListedKey, listApiKeys } from '../keys/api-keys.ts';
import { allPermissions } from '../keys/permissions.ts';
import { limits } from '../limits.ts';
import { type IssuedKey, issueKey, revokeKey, rotateKey } from '../operator/audited-actions.ts';
import {
  browserPermissions,
  keyLabel,
  originProblem,
  originRule,
  permissionProblem,
  permissionsOf,
} from '../operator/rules.ts';
import { commandError } from './arguments/help.ts';
import { operator, organisationNamed, printAll, stateOf } from './arguments/operator.ts';
import { readExpiry, readPeriod } from './arguments/periods.ts';
import { withPool } from './database/with-pool.ts';

export async function run([action, ...args]: string[]): Promise<void> {
  if (action === 'issue') return issue(args);
  if (action === 'list') return list(args);
  if (action === 'rotate') return rotate(args);
  if (action === 'revoke') return revoke(args);
  throw commandError(
    'keys expects issue, list, rotate or revoke; run intake-server keys --help for examples',
  );
}

async function issue(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      organisation: { type: 'string' },
      scope: { type: 'string', multiple: true },
      browser: { type: 'boolean', default: false },
      origin: { type: 'string', multiple: true, default: [] },
      label: { type: 'string' },
      expires: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const { organisation: slug, browser, label = null } = values;
  if (slug === undefined) throw commandError('specify the organisation: keys issue --organisation <slug>');
  const browserOrigins = browser ? originsOf(values.origin) : null;
  if (!browser && values.origin.length > 0)
    throw commandError('--origin is for browser keys: keys issue --browser --origin https://shop.example');
  if (browser && values.scope)
    throw commandError('a browser key only records interactions: leave --scope out, or leave --browser out');
  const scope = values.scope ?? (browser ? browserPermissions : allPermissions);
  const unknown = scope.find((permission) => permissionProblem(permission));
  if (unknown !== undefined) throw commandError(`--scope ${permissionProblem(unknown)}, not "${unknown}"`);
  const problem = label === '' ? { message: 'must not be empty' } : keyLabel.read(label ?? '');
  if (typeof problem === 'object') throw commandError(`--label ${problem.message}`);
  const expiresAt = values.expires === undefined ? null : readExpiry(values.expires);
  const permissions = permissionsOf(scope);
  const issued = await withPool(async (pool) => {
    const { organisation_id: organisationId } = await organisationNamed(pool, slug);
    return issueKey(pool, operator(), { organisationId, permissions, browserOrigins, label, expiresAt });
  });
  const until = issued.expires_at === null ? '' : ` until ${issued.expires_at}`;
  const from = browser ? ` from ${issued.origins.join(', ')}` : '';
  show(
    issued,
    values.json,
    `Issued the key ${issued.key_id} for ${slug}: ${permissions.join(', ')}${from}${until}`,
  );
}

function originsOf(given: readonly string[]): string[] {
  const origins = [...new Set(given)];
  if (origins.length === 0)
    throw commandError('specify the pages that use it: keys issue --browser --origin https://shop.example');
  if (origins.length > limits.browserOriginsMax)
    throw commandError(`a key can have at most ${limits.browserOriginsMax} origins; issue a second one`);
  const wrong = origins.find((origin) => originProblem(origin));
  if (wrong !== undefined) throw commandError(`--origin ${originRule}, not "${wrong}"`);
  return origins;
}

function show(issued: IssuedKey, json: boolean, sentence: string): void {
  const advice = issued.browser
    ? 'Put it into the pages. It is shown only once and is not stored.'
    : 'Keep it safe: it is shown only once and is not stored.';
  console.log(json ? JSON.stringify(issued) : `${sentence}\n\n  ${issued.key}\n\n${advice}`);
}

async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      organisation: { type: 'string' },
      expiring: { type: 'string' },
      unused: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const { organisation: slug, expiring, unused, json } = values;
  const expiresBefore = expiring === undefined ? undefined : new Date(Date.now() + readPeriod(expiring));
  await withPool(async (pool) => {
    const organisation = slug === undefined ? null : await organisationNamed(pool, slug);
    const organisationId = organisation?.organisation_id ?? null;
    const filter = { organisationId, expiresBefore, unused };
    await printAll((after) => listApiKeys(pool, filter, after, limits.listedPerPageMax), {
      json,
      columns: ['key id', 'organisation', 'permissions', 'issued', 'state', 'last used', 'label'],
      nameOf: keyCursor,
      lineOf,
    });
  });
}

function lineOf(key: ListedKey): string {
  const used = key.last_used_at === null ? 'never used' : `used ${key.last_used_at}`;
  const { key_id, organisation, permissions, browser, origins, created_at, label } = key;
  const may = browser ? `browser ${origins.join(',')}` : permissions.join(',');
  return [key_id, organisation, may, created_at, stateOf(key), used, label ?? ''].join('\t').trimEnd();
}

async function rotate(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      grace: { type: 'string', default: '24h' },
      expires: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const keyId = oneKeyId(positionals, 'rotate');
  const graceMs = readPeriod(values.grace);
  if (graceMs > limits.graceSecondsMax * 1_000) throw commandError('--grace must be at most 365d');
  const expiresAt = values.expires === undefined ? null : readExpiry(values.expires);
  const successor = await withPool((pool) => rotateKey(pool, operator(), keyId, { graceMs, expiresAt }));
  if (!successor) throw commandError(`there is no key ${keyId} in use; keys list shows them`);
  const { key_id, expires_at } = successor;
  const end = expires_at === null ? 'never expires (--expires sets an end)' : `expires ${expires_at}`;
  show(
    successor,
    values.json,
    `Issued the key ${key_id} as the successor of ${keyId}. The new key ${end}; the old one works for ${values.grace} more.`,
  );
}

/** The command never takes the key itself, which would stay in the shell history. */
function oneKeyId(positionals: readonly string[], action: string): string {
  const [keyId, ...rest] = positionals;
  if (keyId === undefined || rest.length > 0)
    throw commandError(`specify one key by its id: keys ${action} <key-id>`);
  if (keyId.startsWith('intake_')) {
    throw commandError('specify the id of the key (the part between the underscores), not the key');
  }
  return keyId;
}

async function revoke(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const keyId = oneKeyId(positionals, 'revoke');
  if (!(await withPool((pool) => revokeKey(pool, operator(), keyId)))) {
    throw commandError(`there is no key ${keyId}; keys list shows them`);
  }
  console.log(`Revoked the key ${keyId}.`);
}
