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
  type ChangedOrganisation,
  findOrganisation,
  insertOrganisation,
  markDeleted,
  type Organisation,
  updateOrganisation,
} from './organisations.ts';

export interface IssuedKey extends ListedKey {
  readonly key: string;
}

/** Returns undefined if the slug is taken. */
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

/** Omitted fields stay unchanged. */
export type OrganisationChange = Partial<Omit<ChangedOrganisation, 'organisation_id'>>;

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

function actsOf(old: Organisation, changed: Organisation): [act: string, details: Record<string, unknown>][] {
  const {
    name,
    suspended_at,
    deleted_at,
    removal,
    recommendations_report,
    lake,
    organisation_id,
    slug,
    created_at,
    // These values are measured and not set by the operator.
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
  if (lake !== old.lake) acts.push(['organisation.lake', { lake }]);
  const entries = Object.entries(settings).filter(
    ([setting, value]) => value !== old[setting as keyof Organisation],
  );
  for (const [act, own] of Map.groupBy(entries, ([setting]) =>
    setting.endsWith('_kept_days') ? 'organisation.retention' : 'organisation.limit',
  ))
    acts.push([act, Object.fromEntries(own)]);
  return acts;
}

/** The keys are refused, but the rows stay until the organisation is removed. Deleting it twice changes nothing. */
export const deleteOrganisation = (pool: Pool, by: Operator, slug: string) =>
  setDeleted(pool, by, slug, true);

/** The organisation may be suspended, as it was before. Changes nothing if it is not deleted. */
export const restoreOrganisation = (pool: Pool, by: Operator, slug: string) =>
  setDeleted(pool, by, slug, false);

async function setDeleted(
  pool: Pool,
  by: Operator,
  slug: string,
  isDeleted: boolean,
): Promise<Organisation | undefined> {
  return inTransaction(pool, async (client) => {
    const old = await findOrganisation(client, slug, 'for update');
    if (!old || (old.deleted_at !== null) === isDeleted) return old;
    if (!isDeleted && old.removal) throw new RequestError('removal_begun');
    const organisationId = old.organisation_id;
    const marked = await markDeleted(client, organisationId, isDeleted);
    const act = isDeleted ? 'organisation.delete' : 'organisation.restore';
    // These entries outlive the organisation, so they store its slug and id without a foreign key.
    await audit(client, by, act, { slug, organisation_id: organisationId }, { organisationId });
    return marked;
  });
}

/** Also prevents deletion until the transaction ends. */
async function refuseDeleted(client: Client, organisationId: string): Promise<void> {
  const { rows } = await client.query(
    'select from organisations where organisation_id = $1 and deleted_at is null for share',
    [organisationId],
  );
  if (rows.length === 0) throw new RequestError('organisation_is_deleted');
}

type KeyWanted = Omit<NewApiKey, 'keyId' | 'keySha256' | 'createdBy' | 'successorOf'>;

/** This is the only time the key is returned, because only its hash is stored. */
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

export interface ConsoleLink {
  readonly path: string;
  /** Revoking this key disables the link. */
  readonly key_id: string;
  readonly expires_at: string;
}

/** A link's key has no secret to hash. The database recognises and removes expired keys of links by this value. */
const noKeySha256 = Buffer.alloc(32);

/** The link works once. It has its own key, which nothing else can use, and the session ends when that key expires. */
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
    // A platform creates a link for each visit of its users, so the links of a request are counted, one entry a day.
    if (by.requestId !== undefined)
      await client.query('select count_console_link($1, $2, $3)', [by.actor, organisationId, isReadOnly]);
    else await audit(client, by, 'console.link', { permissions, expires_at }, { organisationId, keyId });
    await client.query('select remove_link_keys()');
    // The token is placed in the fragment, which browsers never send and proxies never log.
    return { path: `/console/sign-in#${token}`, key_id: keyId, expires_at };
  });
}

/** Both keys work during the grace period. Returns undefined if the old key is not active. */
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

/** Revoking a key twice changes nothing. */
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
  if (!listed) throw new Error('a key that was just stored does not exist');
  return { ...listed, key };
}
