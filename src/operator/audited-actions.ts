import type { QuotaUsage } from '../admission/quota.ts';
import { RequestError } from '../errors.ts';
import {
  endApiKeyAfter,
  findListedKey,
  insertApiKey,
  type ListedKey,
  type NewApiKey,
  revokeApiKey,
} from '../keys/api-keys.ts';
import { hashConsoleToken, makeConsoleToken } from '../keys/console-sessions.ts';
import { hashKey, makeKey } from '../keys/key-format.ts';
import { allPermissions, readingPermissions } from '../keys/permissions.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { audit, type Operator } from './audit-log.ts';
import {
  findOrganisation,
  insertOrganisation,
  markDeleted,
  type Organisation,
  updateOrganisation,
} from './organisations.ts';

/** A key with its details; the only time the key is shown. */
export interface IssuedKey extends ListedKey {
  readonly key: string;
}

/** Undefined if the slug is taken. */
export async function createOrganisation(
  pool: Pool,
  by: Operator,
  slug: string,
  name: string,
): Promise<Organisation | undefined> {
  return inTransaction(pool, async (client) => {
    const created = await insertOrganisation(client, slug, name);
    const organisationId = created?.organisation_id;
    if (organisationId) await audit(client, by, 'organisation.create', { slug, name }, { organisationId });
    return created;
  });
}

/** The changes to an organisation; omitted fields stay as they are. */
export type OrganisationChange = Partial<
  Omit<
    Organisation,
    'organisation_id' | 'slug' | 'created_at' | 'suspended_at' | 'deleted_at' | 'removal' | keyof QuotaUsage
  >
> & { readonly suspended?: boolean };

/** Undefined if there is no such organisation. */
export async function changeOrganisation(
  pool: Pool,
  by: Operator,
  slug: string,
  { suspended, ...change }: OrganisationChange,
): Promise<Organisation | undefined> {
  return inTransaction(pool, async (client) => {
    const old = await findOrganisation(client, slug, 'for update');
    if (!old) return undefined;
    if (old.deleted_at !== null) throw new RequestError('organisation_is_deleted');
    const changed = await updateOrganisation(client, {
      ...old,
      ...change,
      suspended: suspended ?? old.suspended_at !== null,
    });
    const about = { organisationId: old.organisation_id };
    for (const [act, details] of actsOf(old, changed)) await audit(client, by, act, details, about);
    return changed;
  });
}

/** The audit entries for a change; none if nothing changed. */
function actsOf(old: Organisation, changed: Organisation): [act: string, details: Record<string, unknown>][] {
  const {
    name,
    suspended_at,
    deleted_at,
    removal,
    recommendations_report,
    organisation_id,
    slug,
    created_at,
    // Measured, not set by anybody.
    records_stored,
    bytes_stored,
    ...settings
  } = changed;
  const acts: [string, Record<string, unknown>][] = [];
  if (name !== old.name) acts.push(['organisation.rename', { name }]);
  if ((suspended_at === null) !== (old.suspended_at === null)) {
    acts.push([suspended_at === null ? 'organisation.resume' : 'organisation.suspend', {}]);
  }
  if (recommendations_report !== old.recommendations_report)
    acts.push(['organisation.report', { recommendations_report }]);
  const entries = Object.entries(settings).filter(
    ([setting, value]) => value !== old[setting as keyof Organisation],
  );
  for (const [act, own] of Map.groupBy(entries, ([setting]) =>
    setting.endsWith('_kept_days') ? 'organisation.retention' : 'organisation.limit',
  ))
    acts.push([act, Object.fromEntries(own)]);
  return acts;
}

/**
 * Deletes an organisation: its keys are refused, and its rows stay until it is removed. Deleting it twice changes nothing.
 * Undefined if there is no such organisation.
 */
export async function deleteOrganisation(
  pool: Pool,
  by: Operator,
  slug: string,
): Promise<Organisation | undefined> {
  return inTransaction(pool, async (client) => {
    const old = await findOrganisation(client, slug, 'for update');
    if (!old || old.deleted_at !== null) return old;
    return mark(client, by, old, true);
  });
}

/**
 * Restores a deleted organisation as it was; it is suspended if it was before. One that is not deleted does not change. Undefined if
 * there is no such organisation.
 */
export async function restoreOrganisation(
  pool: Pool,
  by: Operator,
  slug: string,
): Promise<Organisation | undefined> {
  return inTransaction(pool, async (client) => {
    const old = await findOrganisation(client, slug, 'for update');
    if (!old || old.deleted_at === null) return old;
    if (old.removal) throw new RequestError('removal_begun');
    return mark(client, by, old, false);
  });
}

async function mark(
  client: Client,
  by: Operator,
  { organisation_id: organisationId, slug }: Organisation,
  isDeleted: boolean,
): Promise<Organisation> {
  const marked = await markDeleted(client, organisationId, isDeleted);
  const act = isDeleted ? 'organisation.delete' : 'organisation.restore';
  // These entries outlive the organisation: they name it without a reference to it.
  await audit(client, by, act, { slug, organisation_id: organisationId }, { organisationId });
  return marked;
}

/** Keeps the organisation from being deleted until the end of the transaction. */
async function refuseDeleted(client: Client, organisationId: string): Promise<void> {
  const { rows } = await client.query(
    'select from organisations where organisation_id = $1 and deleted_at is null for share',
    [organisationId],
  );
  if (rows.length === 0) throw new RequestError('organisation_is_deleted');
}

export type KeyWanted = Omit<NewApiKey, 'keyId' | 'keySha256' | 'createdBy' | 'successorOf'>;

/** Makes a key and stores its hash. The key is returned only here. */
export async function issueKey(pool: Pool, by: Operator, wanted: KeyWanted): Promise<IssuedKey> {
  return inTransaction(pool, async (client) => {
    const issued = await insertKey(client, by, wanted, null);
    const { permissions, browser, origins, label, expires_at } = issued;
    const details = { permissions, ...(browser && { browser, origins }), label, expires_at };
    const about = { organisationId: wanted.organisationId, keyId: issued.key_id };
    await audit(client, by, 'key.issue', details, about);
    return issued;
  });
}

/** Where a link leads, below the address of the service. */
export interface ConsoleLink {
  readonly path: string;
  /** The key whose rights it has, and that ends it when it is revoked. */
  readonly key_id: string;
  readonly expires_at: string;
}

/** In place of the hash of a link's key, which has no text. By it the database finds such keys and removes those that have ended. */
const noKeySha256 = Buffer.alloc(32);

/**
 * Makes a link that signs somebody in to the console once. Behind it is a key that only this link can use; what was begun with it
 * ends with that key.
 */
export async function issueConsoleLink(
  pool: Pool,
  by: Operator,
  { organisationId, isReadOnly, expiresAt }: { organisationId: string; isReadOnly: boolean; expiresAt: Date },
): Promise<ConsoleLink> {
  const token = makeConsoleToken();
  return inTransaction(pool, async (client) => {
    await refuseDeleted(client, organisationId);
    const { keyId } = makeKey();
    const permissions = isReadOnly ? readingPermissions : allPermissions;
    await insertApiKey(client, {
      keyId,
      organisationId,
      permissions,
      expiresAt,
      keySha256: noKeySha256,
      label: 'console link',
      createdBy: by.actor,
      successorOf: null,
    });
    await client.query('insert into console_links (token_sha256, key_id, expires_at) values ($1, $2, $3)', [
      hashConsoleToken(token),
      keyId,
      expiresAt,
    ]);
    const expires_at = expiresAt.toISOString();
    await audit(client, by, 'console.link', { permissions, expires_at }, { organisationId, keyId });
    await client.query('select remove_link_keys()');
    // In the fragment: a browser sends it to nobody, and no proxy logs it.
    return { path: `/console/sign-in#${token}`, key_id: keyId, expires_at };
  });
}

/**
 * Issues a successor with the same permissions, origins and label; the old key expires after the grace period, and both work
 * meanwhile. Undefined if the old key is not in use.
 */
export async function rotateKey(
  pool: Pool,
  by: Operator,
  keyId: string,
  { graceMs, expiresAt }: { graceMs: number; expiresAt: Date | null },
): Promise<IssuedKey | undefined> {
  return inTransaction(pool, async (client) => {
    const old = await endApiKeyAfter(client, keyId, graceMs);
    if (!old) return undefined;
    const issued = await insertKey(client, by, { ...old, expiresAt }, keyId);
    const { key_id: successor, expires_at } = issued;
    const details = { successor, grace_seconds: graceMs / 1_000, expires_at };
    await audit(client, by, 'key.rotate', details, { organisationId: old.organisationId, keyId });
    return issued;
  });
}

/** Undefined if there is no such key. Revoking a key twice changes nothing. */
export async function revokeKey(pool: Pool, by: Operator, keyId: string): Promise<ListedKey | undefined> {
  return inTransaction(pool, async (client) => {
    const revoked = await revokeApiKey(client, keyId);
    if (revoked?.isNew)
      await audit(client, by, 'key.revoke', {}, { organisationId: revoked.organisationId, keyId });
    return revoked && findListedKey(client, keyId);
  });
}

async function insertKey(
  client: Client,
  { actor }: Operator,
  wanted: KeyWanted,
  successorOf: string | null,
): Promise<IssuedKey> {
  await refuseDeleted(client, wanted.organisationId);
  const { keyId, key } = makeKey();
  await insertApiKey(client, { ...wanted, keyId, keySha256: hashKey(key), createdBy: actor, successorOf });
  const listed = await findListedKey(client, keyId);
  if (!listed) throw new Error('a key that was just stored is not there');
  return { ...listed, key };
}
