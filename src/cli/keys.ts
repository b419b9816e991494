import { parseArgs } from 'node:util';
import { type ListedKey, listApiKeys } from '../keys/api-keys.ts';
import { allPermissions } from '../keys/permissions.ts';
import { limits } from '../limits.ts';
import { type IssuedKey, issueKey, revokeKey, rotateKey } from '../operator/acts.ts';
import { keyLabel, permissionProblem, permissionsOf } from '../operator/rules.ts';
import { resourceTypes } from '../registry/resources.ts';
import { readDateTime, unixMsOf } from '../registry/times.ts';
import { commandError } from './help.ts';
import { likestFirst } from './likest-first.ts';
import { operator, organisationNamed, printAll } from './operator.ts';
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
      label: { type: 'string' },
      expires: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const { organisation: slug, scope, label = null } = values;
  if (slug === undefined) throw commandError('say for whom: keys issue --organisation <slug>');
  const unknown = scope.find((permission) => permissionProblem(permission));
  if (unknown !== undefined) throw unknownPermission(unknown);
  const problem = label === '' ? { message: 'must not be empty' } : keyLabel.read(label ?? '');
  if (typeof problem === 'object') throw commandError(`--label ${problem.message}`);
  const expiresAt = values.expires === undefined ? null : readExpiry(values.expires);
  const permissions = permissionsOf(scope);
  const issued = await withPool(async (pool) => {
    const { organisation_id: organisationId } = await organisationNamed(pool, slug);
    return issueKey(pool, operator(), { organisationId, permissions, label, expiresAt });
  });
  const until = issued.expires_at === null ? '' : ` until ${issued.expires_at}`;
  show(issued, values.json, `Issued the key ${issued.key_id} for ${slug}: ${permissions.join(', ')}${until}`);
}

function unknownPermission(given: string): Error {
  const [, type] = /^data:write:(.+)$/.exec(given) ?? [];
  return commandError(
    type === undefined
      ? `"${given}" is no permission; use ${likestFirst(given, allPermissions).join(', ')} or data:write:<type>`
      : `"${given}" is no permission, for there is no type "${type}"; the types are ` +
          likestFirst(type, resourceTypes).join(', '),
  );
}

function show(issued: IssuedKey, json: boolean, sentence: string): void {
  if (json) {
    console.log(JSON.stringify(issued));
    return;
  }
  console.log(sentence);
  console.log(`\n  ${issued.key}\n`);
  console.log('Keep it safe: it is shown this once and stored nowhere.');
}

async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { organisation: { type: 'string' }, json: { type: 'boolean', default: false } },
  });
  const { organisation: slug, json } = values;
  await withPool(async (pool) => {
    const organisation = slug === undefined ? null : await organisationNamed(pool, slug);
    const organisationId = organisation?.organisation_id ?? null;
    await printAll((after) => listApiKeys(pool, organisationId, after, limits.listedPerPageMax), {
      json,
      nameOf: ({ key_id }) => key_id,
      lineOf,
    });
  });
}

function lineOf(key: ListedKey): string {
  const state =
    key.revoked_at !== null
      ? `revoked ${key.revoked_at}`
      : key.expires_at !== null
        ? `${Date.parse(key.expires_at) < Date.now() ? 'ended' : 'ends'} ${key.expires_at}`
        : 'active';
  const used = key.last_used_at === null ? 'never used' : `used ${key.last_used_at}`;
  const { key_id, organisation, permissions, created_at, label } = key;
  return [key_id, organisation, permissions.join(','), created_at, state, used, label ?? '']
    .join('\t')
    .trimEnd();
}

async function rotate(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { grace: { type: 'string', default: '24h' }, json: { type: 'boolean', default: false } },
  });
  const keyId = oneKeyId(positionals, 'rotate');
  const graceMs = readDuration(values.grace);
  if (graceMs > limits.graceSecondsMax * 1_000) throw commandError('--grace must be at most 365d');
  const successor = await withPool((pool) => rotateKey(pool, operator(), keyId, graceMs));
  if (!successor) throw commandError(`there is no key ${keyId} in use; keys list shows them`);
  const { grace } = values;
  show(
    successor,
    values.json,
    `Issued the key ${successor.key_id} as the successor of ${keyId}, which goes on working for ${grace}.`,
  );
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const durationPattern = /^(\d{1,4})([smhd])$/;
const isDuration = (text: string) => durationPattern.test(text);

function readDuration(text: string): number {
  const [, count = '', unit = ''] = durationPattern.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit] ?? Number.NaN);
  if (Number.isNaN(ms)) throw commandError(`"${text}" is no period; write it as 24h, 30m, 90s or 7d`);
  return ms;
}

/** A duration from now, or a date-time; either must lie in the future. */
function readExpiry(given: string): Date {
  const instant = readDateTime(given);
  if (instant === undefined && !isDuration(given))
    throw commandError(
      `--expires takes a period such as 90d or a date-time such as 2027-01-01T00:00:00Z, not "${given}"`,
    );
  const ms = instant === undefined ? Date.now() + readDuration(given) : unixMsOf(instant);
  if (ms <= Date.now())
    throw commandError(`--expires ${given} is past; give a date to come, or a period such as 90d`);
  return new Date(ms);
}

/** Takes the id of a key, never the key itself, which would stay in the shell's history. */
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
  if (!(await withPool((pool) => revokeKey(pool, operator(), keyId)))) {
    throw commandError(`there is no key ${keyId}; keys list shows them`);
  }
  console.log(`Revoked the key ${keyId}.`);
}
