import { setTimeout as sleep } from 'node:timers/promises';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { Turns } from '../turns.ts';
import {
  changedApiKeys,
  findApiKey,
  type KeyChanges,
  noteApiKeysUsed,
  type OrganisationLimits,
  type StoredKey,
} from './api-keys.ts';

/** A key as a process remembers it. */
export interface KnownKey {
  readonly organisationId: string;
  readonly keySha256: Buffer;
  readonly permissions: readonly string[];
  readonly suspended: boolean;
  readonly limits: OrganisationLimits;
  /** By this process's own count of time, so that no clock that is set can lengthen it. */
  readonly endsMs: number;
}

interface Entry {
  readonly found: Promise<KnownKey | undefined>;
  /** It is looked up anew from then on, and at once where it has changed. */
  untilMs: number;
  isPending: boolean;
  /** Undefined until it has been found once; what is not found is forgotten. */
  organisationId: string | undefined;
  notedMs: number;
}

/**
 * Caches keys, so that a request costs no query for its key. Changed keys are polled for every other second and looked up
 * anew when they are next used; if polling has failed for four seconds, so is every key. Keys that were not found are not
 * cached.
 */
export class KnownKeys {
  readonly #pool: Pool;
  readonly #entries = new Map<string, Entry>();
  readonly #used = new Set<string>();
  /** One connection fewer than there are: the question what changed does not wait for anyone's look-up. */
  readonly #turns = new Turns({
    atOnce: limits.keyConnectionsMax - 1,
    waitingMax: limits.keyLookUpsWaitingMax,
  });
  #since: string | null = null;
  #server: string | undefined;
  readonly #onOtherServer: () => void;
  /** What was told the last time, which may be told again. */
  #told: Pick<KeyChanges, 'keys' | 'organisations'> = { keys: new Map(), organisations: new Map() };
  #askedMs = Number.NEGATIVE_INFINITY;
  #hits = 0;
  #misses = 0;

  /** The pool is for keys alone: behind everyone's uploads, the question what changed would come too late. */
  constructor(pool: Pool, onOtherServer = () => {}) {
    this.#pool = pool;
    this.#onOtherServer = onOtherServer;
  }

  /** How often a key was known and how often not, and how long ago the last answer was to what changed. */
  get state(): { readonly hits: number; readonly misses: number; readonly changesAgeMs: number } {
    return { hits: this.#hits, misses: this.#misses, changesAgeMs: performance.now() - this.#askedMs };
  }

  /** Since the last poll for changes that succeeded, once there was one. */
  get stalledMs(): number {
    return Number.isFinite(this.#askedMs) ? performance.now() - this.#askedMs : 0;
  }

  /** `mayLookUp` is asked when a query is about to be made, and refuses by throwing. */
  find(keyId: string, mayLookUp: () => Promise<void> = async () => {}): Promise<KnownKey | undefined> {
    const entry = this.#entries.get(keyId);
    if (!entry || performance.now() >= entry.untilMs) return this.#lookUp(keyId, mayLookUp);
    // One that is being looked up at this moment is as good as a look-up of its own, whoever asked for it; unless they
    // were refused.
    if (entry.isPending) {
      return entry.found.catch(async (error: unknown) => {
        if (!(error instanceof RequestError) || error.code !== 'too_many_failed_keys') throw error;
        await mayLookUp();
        return this.find(keyId, mayLookUp);
      });
    }
    if (performance.now() - this.#askedMs >= limits.keyChangesUnknownMs)
      return this.#lookUp(keyId, mayLookUp);
    // The first of them is the one that was used longest ago.
    this.#entries.delete(keyId);
    this.#entries.set(keyId, entry);
    this.#hits++;
    return entry.found;
  }

  /** Whether a key with this id was found before, in use or not, even if it must be looked up anew. */
  has(keyId: string): boolean {
    return this.#entries.get(keyId)?.organisationId !== undefined;
  }

  /** That it was used is written down with others, later, and once a minute at most. */
  noteUse(keyId: string): void {
    const entry = this.#entries.get(keyId);
    if (!entry || performance.now() - entry.notedMs < limits.keyUseNotedMs) return;
    entry.notedMs = performance.now();
    this.#used.add(keyId);
  }

  /** Asks what changed, now and from now on; returns how to stop. */
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
    // Whose key it is will be known only then.
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
    // Before the answer is there: a change that is told meanwhile must find it.
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
    // A server that was restored or took over may lack the last commits, and behind a pooler no connection tells of it.
    const isOther = this.#server !== undefined && server !== this.#server;
    this.#server = server;
    if (isOther) this.#onOtherServer();
    if (isOther || askedMs - this.#askedMs >= limits.keyChangesUnknownMs) this.#expire(() => true);
    for (const keyId of news(keys, this.#told.keys)) {
      const entry = this.#entries.get(keyId);
      if (entry) entry.untilMs = 0;
    }
    const changed = news(organisations, this.#told.organisations);
    if (changed.size > 0) this.#expire((id) => id === undefined || changed.has(id));
    this.#told = changes;
    this.#since = upTo;
    this.#askedMs = askedMs;
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

/** What was changed since it was told before. */
function news(now: ReadonlyMap<string, string>, before: ReadonlyMap<string, string>): Set<string> {
  return new Set([...now].flatMap(([id, changedIn]) => (before.get(id) === changedIn ? [] : id)));
}

function knownKey(stored: StoredKey): KnownKey {
  const { organisation_id, key_sha256, permissions, suspended, revoked, ends_in_ms, ...rest } = stored;
  const endsMs = revoked ? 0 : performance.now() + (ends_in_ms ?? Number.POSITIVE_INFINITY);
  return {
    organisationId: organisation_id,
    keySha256: key_sha256,
    permissions,
    suspended,
    endsMs,
    limits: rest,
  };
}
