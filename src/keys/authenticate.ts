import { timingSafeEqual } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { blockOf, type FailedKeys } from '../admission/failed-keys.ts';
import { FairQueue } from '../admission/fair-queue.ts';
import { type Quota, quotaOf } from '../admission/quota.ts';
import type { Counted, OrganisationLimits } from '../admission/request-limits.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { changedApiKeys, findApiKey, type KeyChanges, noteApiKeysUsed, type StoredKey } from './api-keys.ts';
import type { ConsoleSession, ConsoleSessions } from './console-sessions.ts';
import { hashKey, keyIdOf } from './key-format.ts';

/** Derived only from the key, never from anything else in the request. */
export interface Principal extends Counted {
  readonly keyId: string;
  readonly permissions: readonly string[];
  readonly browserOrigins: readonly string[] | null;
  /** Undefined unless the organisation has used most of a quota. */
  readonly quota: Quota | undefined;
}

export async function authenticate(
  keys: KnownKeys,
  failedKeys: FailedKeys,
  { authorization, address }: { authorization: string | undefined; address: string },
  onBrowserKey: (origins: readonly string[]) => void = () => {},
): Promise<Principal> {
  const key = bearerOf(authorization);
  // A request without a key is not an attempt to guess one.
  if (key === undefined) throw unauthorized();
  const keyId = keyIdOf(key);
  // A key that was found before has its own failure count, even after its cache entry has expired. Other wrong keys
  // from the same address therefore do not lock it out.
  const counted = keyId !== undefined && keys.has(keyId) ? keyId : undefined;
  await failedKeys.refuseTooMany(address, counted);
  // Checked again before a queued lookup runs, because each of many concurrent requests counts as an attempt.
  const mayLookUp = () => failedKeys.refuseTooMany(address, counted);
  const known = keyId === undefined ? undefined : await keys.find(keyId, mayLookUp);
  const isRight = known !== undefined && timingSafeEqual(known.keySha256, hashKey(key));
  // Called before an expired or revoked key is refused, because the page that uses it must be able to read the error.
  if (isRight && known.browserOrigins) onBrowserKey(known.browserOrigins);
  if (keyId === undefined || !isRight || known.endsMs <= performance.now()) {
    await failedKeys.count(address, counted);
    throw unauthorized();
  }
  return admitted(keys, keyId, known, address);
}

export async function authenticateSession(
  { keys, failedKeys, sessions }: { keys: KnownKeys; failedKeys: FailedKeys; sessions: ConsoleSessions },
  token: string | undefined,
  address: string,
): Promise<{ readonly principal: Principal; readonly session: ConsoleSession }> {
  if (token === undefined) throw new RequestError('not_signed_in');
  await failedKeys.refuseTooMany(address);
  const session = await sessions.find(token);
  const known = session && (await keys.find(session.keyId));
  if (!known || known.endsMs <= performance.now()) {
    await failedKeys.count(address);
    throw new RequestError('not_signed_in');
  }
  return { principal: admitted(keys, session.keyId, known, address), session };
}

function admitted(keys: KnownKeys, keyId: string, known: KnownKey, address: string): Principal {
  if (known.deleted) throw new RequestError('organisation_deleted');
  if (known.suspended) throw new RequestError('organisation_suspended');
  keys.noteUse(keyId);
  return {
    organisationId: known.organisationId,
    keyId,
    permissions: known.permissions,
    browserOrigins: known.browserOrigins,
    visitor: known.browserOrigins ? blockOf(address) : undefined,
    limits: known.limits,
    quota: known.quota,
  };
}

export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

export function unauthorized(code: 'unauthorized' | 'admin_unauthorized' = 'unauthorized'): RequestError {
  return new RequestError(code, { headers: { 'www-authenticate': 'Bearer' } });
}

export interface KnownKey {
  readonly organisationId: string;
  readonly keySha256: Buffer;
  readonly permissions: readonly string[];
  readonly browserOrigins: readonly string[] | null;
  readonly suspended: boolean;
  readonly deleted: boolean;
  readonly limits: OrganisationLimits;
  readonly quota: Quota | undefined;
  /** On this process's monotonic clock, so that changing the system clock cannot extend the key's life. */
  readonly endsMs: number;
}

interface Entry {
  readonly found: Promise<KnownKey | undefined>;
  /** Set to 0 when the key has changed. */
  untilMs: number;
  isPending: boolean;
  /** Undefined until the key has been found. */
  organisationId: string | undefined;
  notedMs: number;
}

/**
 * A poll every two seconds finds changed keys, which are then looked up again when they are next used. If polling has
 * failed for four seconds, every key is looked up. Keys that were not found are not cached.
 */
export class KnownKeys {
  readonly #pool: Pool;
  readonly #entries = new Map<string, Entry>();
  readonly #used = new Set<string>();
  /** Runs one lookup fewer than there are connections, so that the poll never waits for lookups. */
  readonly #turns = new FairQueue({
    atOnce: limits.keyConnectionsMax - 1,
    waitingMax: limits.keyLookUpsWaitingMax,
  });
  #since: string | null = null;
  #server: string | undefined;
  readonly #onOtherServer: () => void;
  readonly #onOrganisations: (changed: ReadonlySet<string>) => void;
  /** The changes that the last poll returned. The next poll may return them again. */
  #reported: Pick<KeyChanges, 'keys' | 'organisations'> = { keys: new Map(), organisations: new Map() };
  #askedMs = Number.NEGATIVE_INFINITY;
  #hits = 0;
  #misses = 0;

  /** The pool must be used only for keys. If the poll were queued behind uploads, it would be late. */
  constructor(
    pool: Pool,
    onOtherServer = () => {},
    onOrganisations: (changed: ReadonlySet<string>) => void = () => {},
  ) {
    this.#pool = pool;
    this.#onOtherServer = onOtherServer;
    this.#onOrganisations = onOrganisations;
  }

  get state(): { readonly hits: number; readonly misses: number; readonly changesAgeMs: number } {
    return { hits: this.#hits, misses: this.#misses, changesAgeMs: performance.now() - this.#askedMs };
  }

  /** 0 before the first poll. */
  get stalledMs(): number {
    return Number.isFinite(this.#askedMs) ? performance.now() - this.#askedMs : 0;
  }

  /** `mayLookUp` is called before a query, and may throw to prevent the query. */
  find(keyId: string, mayLookUp: () => Promise<void> = async () => {}): Promise<KnownKey | undefined> {
    const entry = this.#entries.get(keyId);
    if (!entry || performance.now() >= entry.untilMs) return this.#lookUp(keyId, mayLookUp);
    // Share a pending lookup, unless it was refused for too many failures: that limit may not apply to this caller.
    if (entry.isPending) {
      return entry.found.catch(async (error: unknown) => {
        if (!(error instanceof RequestError) || error.code !== 'too_many_failed_keys') throw error;
        await mayLookUp();
        return this.find(keyId, mayLookUp);
      });
    }
    if (performance.now() - this.#askedMs >= limits.keyChangesUnknownMs)
      return this.#lookUp(keyId, mayLookUp);
    // Move the entry to the end, so that the first entry is the least recently used.
    this.#entries.delete(keyId);
    this.#entries.set(keyId, entry);
    this.#hits++;
    return entry.found;
  }

  /** Returns whether this key was found before, valid or not, even if its entry has expired. */
  has(keyId: string): boolean {
    return this.#entries.get(keyId)?.organisationId !== undefined;
  }

  /** Queues the use at most once a minute per key. The next poll writes it to the database. */
  noteUse(keyId: string): void {
    const entry = this.#entries.get(keyId);
    if (!entry || performance.now() - entry.notedMs < limits.keyUseNotedMs) return;
    entry.notedMs = performance.now();
    this.#used.add(keyId);
  }

  watch(onError: (error: unknown) => void, onAnswer = () => {}): () => Promise<void> {
    const stopping = new AbortController();
    const running = this.#keepAsking(stopping.signal, onError, onAnswer);
    return async () => {
      stopping.abort();
      await running;
    };
  }

  async #keepAsking(
    stopping: AbortSignal,
    onError: (error: unknown) => void,
    onAnswer: () => void,
  ): Promise<void> {
    for (let isLast = false; ; ) {
      const dueMs = performance.now() + limits.keyChangesIntervalMs;
      const asked = isLast ? Promise.resolve() : this.#noteChanged();
      await asked.then(() => this.#writeUses()).then(onAnswer, onError);
      if (isLast) return;
      const waitMs = Math.max(0, dueMs - performance.now());
      await sleep(waitMs, undefined, { signal: stopping }).catch(() => {});
      isLast = stopping.aborted;
    }
  }

  #lookUp(keyId: string, mayLookUp: () => Promise<void>): Promise<KnownKey | undefined> {
    this.#misses++;
    // All lookups share one queue, because the key's organisation is not known yet.
    const found = this.#turns.take('', async () => {
      await mayLookUp();
      const stored = await findApiKey(this.#pool, keyId);
      return stored && knownKey(stored);
    });
    const before = this.#entries.get(keyId);
    const entry: Entry = {
      found,
      untilMs: performance.now() + limits.keyKnownMs,
      isPending: true,
      organisationId: before?.organisationId,
      notedMs: before?.notedMs ?? Number.NEGATIVE_INFINITY,
    };
    // Stored before the response arrives, so that a change reported in the meantime finds the entry and expires it.
    this.#entries.delete(keyId);
    this.#entries.set(keyId, entry);
    const settle = (organisationId: string | undefined) => {
      entry.isPending = false;
      entry.organisationId = organisationId;
      if (organisationId === undefined && this.#entries.get(keyId) === entry) this.#entries.delete(keyId);
    };
    found.then(
      (key) => settle(key?.organisationId),
      () => {
        entry.untilMs = 0;
        settle(entry.organisationId);
      },
    );
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > limits.keysKnownMax && oldest !== undefined) this.#entries.delete(oldest);
    return found;
  }

  async #noteChanged(): Promise<void> {
    const askedMs = performance.now();
    const changes = await changedApiKeys(this.#pool, this.#since);
    const { upTo, server, keys, organisations } = changes;
    // A restored or promoted server may lack the latest commits, and a pooler hides that the connection has changed.
    const isOther = this.#server !== undefined && server !== this.#server;
    this.#server = server;
    if (isOther) this.#onOtherServer();
    if (isOther || askedMs - this.#askedMs >= limits.keyChangesUnknownMs) this.#expire(() => true);
    for (const keyId of news(keys, this.#reported.keys)) {
      const entry = this.#entries.get(keyId);
      if (entry) entry.untilMs = 0;
    }
    const changed = news(organisations, this.#reported.organisations);
    if (changed.size > 0) this.#expire((id) => id === undefined || changed.has(id));
    this.#reported = changes;
    this.#since = upTo;
    this.#askedMs = askedMs;
    if (changed.size > 0) this.#onOrganisations(changed);
  }

  #expire(isMeant: (organisationId: string | undefined) => boolean): void {
    for (const entry of this.#entries.values()) if (isMeant(entry.organisationId)) entry.untilMs = 0;
  }

  async #writeUses(): Promise<void> {
    if (this.#used.size === 0) return;
    const keyIds = [...this.#used];
    await noteApiKeysUsed(this.#pool, keyIds);
    for (const keyId of keyIds) this.#used.delete(keyId);
  }
}

function news(now: ReadonlyMap<string, string>, before: ReadonlyMap<string, string>): Set<string> {
  return new Set([...now].flatMap(([id, changedIn]) => (before.get(id) === changedIn ? [] : id)));
}

function knownKey(stored: StoredKey): KnownKey {
  const { permissions, suspended, deleted, revoked, ends_in_ms } = stored;
  return {
    organisationId: stored.organisation_id,
    keySha256: stored.key_sha256,
    permissions,
    browserOrigins: stored.browser_origins,
    suspended,
    deleted,
    endsMs: revoked ? 0 : performance.now() + (ends_in_ms ?? Number.POSITIVE_INFINITY),
    limits: {
      requests_per_second_max: stored.requests_per_second_max,
      interactions_per_second_max: stored.interactions_per_second_max,
      records_per_second_max: stored.records_per_second_max,
      bytes_in_flight_max: stored.bytes_in_flight_max,
    },
    quota: quotaOf(stored),
  };
}
