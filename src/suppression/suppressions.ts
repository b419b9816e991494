import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Requirement } from '../postgres/health/requirements.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';
import { IdFilter } from './id-filter.ts';
import { fingerprintOf, IdHasher, inSlices } from './suppression-key.ts';

interface Known {
  readonly version: number;
  readonly filters: readonly { readonly hasher: IdHasher; readonly filter: IdFilter }[];
}

const none: Known = { version: 0, filters: [] };

/**
 * Suppressions are cached as filters. Every writer compares the version, so a process never uses outdated ones. A
 * filter has false positives, so its matches are looked up in the database.
 */
export class Suppressions {
  readonly #keys: readonly string[];
  readonly #fingerprints: readonly Buffer[];
  /** Called because cached customers may have been erased. */
  onNewVersion: () => void = () => {};
  /** The least recently used organisation comes first. */
  #known = new Map<string, Known>();
  /** Only used in a cluster. */
  readonly #seen = new Map<string, { readonly version: number; readonly sentMs: number }>();

  /** The first key is used for new hashes. Hashes made with the other keys stay valid. */
  constructor(keys: readonly string[]) {
    this.#keys = keys;
    this.#fingerprints = keys.map(fingerprintOf);
  }

  /** Throws if this process lacks a key that is in use, because other processes might not recognise its hashes. */
  async hasherFor(pool: Pick<Pool, 'query'>, organisationId: string): Promise<IdHasher> {
    const [key] = this.#keys;
    if (key === undefined) throw new RequestError('erasure_not_configured');
    const missing = await this.lookForKeys(pool);
    if (missing.length > 0) throw keyMissing(missing);
    return new IdHasher(key, organisationId);
  }

  async requireKeys(client: Pick<Client, 'query'>, organisationId: string): Promise<void> {
    const { rows } = await client.query<{ fingerprint: string }>({
      name: 'missing keys of organisation',
      text: `
        select encode(fingerprint, 'hex') as fingerprint from erasure_keys
        where organisation_id = $1 and fingerprint <> all ($2::bytea[])`,
      values: [organisationId, this.#fingerprints],
    });
    if (rows.length > 0) throw keyMissing(rows.map(({ fingerprint }) => fingerprint));
  }

  /** The keys that hashes of any organisation were made with and that this process lacks. */
  async lookForKeys(pool: Pick<Pool, 'query'>): Promise<string[]> {
    const { rows } = await pool.query<{ fingerprint: string }>({
      name: 'missing keys',
      text: `
        select distinct encode(fingerprint, 'hex') as fingerprint from erasure_keys
        where fingerprint <> all ($1::bytea[])`,
      values: [this.#fingerprints],
    });
    return rows.map(({ fingerprint }) => fingerprint).toSorted();
  }

  /** Without one of the keys, a process would not recognise erased people, so it must not serve. */
  requirement(pool: Pick<Pool, 'query'>): Requirement {
    let missing: readonly string[] = [];
    return {
      look: async () => {
        missing = await this.lookForKeys(pool);
      },
      unmet: () => (missing.length > 0 ? keyMissing(missing) : undefined),
    };
  }

  /** The cached version, or 0 if no suppressions are known. */
  versionOf(organisationId: string): number {
    return (this.#known.get(organisationId) ?? none).version;
  }

  /** Returns a check against the suppressions of this version or a later one. */
  async check(client: Client, organisationId: string, version: number): Promise<IdCheck> {
    const known = version === 0 ? none : await this.#upTo(client, organisationId, version);
    return new IdCheck(client, organisationId, known);
  }

  /** Like `check`, with the version that is current in this transaction. */
  async checkNow(client: Client, organisationId: string): Promise<IdCheck> {
    return this.check(client, organisationId, await currentVersion(client, organisationId));
  }

  async erasedAmong(
    client: Client,
    organisationId: string,
    ids: Iterable<string>,
  ): Promise<ReadonlySet<string>> {
    const check = await this.checkNow(client, organisationId);
    return check.erasedAmong(ids);
  }

  /** Uses the cached version and needs no query. */
  mayBeErased(organisationId: string, ids: readonly (string | null)[]): boolean {
    const { filters } = this.#known.get(organisationId) ?? none;
    return ids.some((id) => id !== null && filters.some((one) => mayHave(one, id)));
  }

  /** Called when a different database server responds, because it may lack the latest erasures. */
  forget(): void {
    // What is still being read from the other server is added to the old map.
    this.#known = new Map();
    this.#seen.clear();
  }

  /** For work that may begin before it is noticed that a different server responds. */
  forgetOrganisation(organisationId: string): void {
    this.#known.delete(organisationId);
  }

  /** Notes a version that was current at some time after `sentMs`. */
  noteVersion(organisationId: string, version: number, sentMs: number): void {
    if (this.#seen.size >= limits.versionsSeenMax) this.#seen.clear();
    this.#seen.set(organisationId, { version, sentMs });
  }

  /**
   * Returns whether this version was current at most `versionSeenMs` ago. Call it only in a transaction that has
   * started: a sweep waits longer than that before it lists the running transactions.
   */
  wasCurrent(organisationId: string, version: number): boolean {
    const seen = this.#seen.get(organisationId);
    return seen?.version === version && performance.now() - seen.sentMs < limits.versionSeenMs;
  }

  async #upTo(client: Client, organisationId: string, version: number): Promise<Known> {
    const all = this.#known;
    const before = all.get(organisationId);
    if (before && before.version >= version) {
      all.delete(organisationId);
      all.set(organisationId, before);
      return before;
    }
    await this.requireKeys(client, organisationId);
    if (this.#keys.length === 0) throw new RequestError('erasure_not_configured');
    const filters =
      before?.filters ??
      this.#keys.map((key) => ({ hasher: new IdHasher(key, organisationId), filter: new IdFilter() }));
    if (!before) {
      const { count } = await queryRow<{ count: number }>(client, {
        name: 'count suppressions',
        text: 'select count(distinct hash)::integer as count from suppressions where organisation_id = $1',
        values: [organisationId],
      });
      for (const { filter } of filters) filter.reserve(count);
    }
    await addHashes(client, organisationId, before?.version ?? 0, (low, high) => {
      for (const { filter } of filters) filter.add(low, high);
    });
    const known = { version, filters };
    this.onNewVersion();
    all.delete(organisationId);
    all.set(organisationId, known);
    this.#forgetOldest();
    return known;
  }

  #forgetOldest(): void {
    const bytesOf = ({ filters }: Known) => filters.reduce((sum, { filter }) => sum + filter.bytes, 0);
    let bytes = [...this.#known.values()].reduce((sum, known) => sum + bytesOf(known), 0);
    for (const [organisationId, known] of this.#known) {
      if (bytes <= limits.suppressionBytesMax || this.#known.size === 1) return;
      bytes -= bytesOf(known);
      this.#known.delete(organisationId);
    }
  }
}

function mayHave({ hasher, filter }: Known['filters'][number], id: string): boolean {
  hasher.hashShort(id);
  return filter.has(hasher.short);
}

export class IdCheck {
  readonly #client: Client;
  readonly #organisationId: string;
  readonly #filters: Known['filters'];

  constructor(client: Client, organisationId: string, { filters }: Known) {
    this.#client = client;
    this.#organisationId = organisationId;
    this.#filters = filters;
  }

  get isEmpty(): boolean {
    return this.#filters.length === 0;
  }

  mayBeErased(id: string): boolean {
    return this.#filters.some((one) => mayHave(one, id));
  }

  /** Like `mayBeErased`, for a UUID whose sixteen bytes start at `at`. */
  mayBeErasedAt(bytes: DataView, at: number): boolean {
    return this.#filters.some(({ hasher, filter }) => {
      hasher.short.hash(bytes, at, 16);
      return filter.has(hasher.short);
    });
  }

  async erasedAmong(ids: Iterable<string>): Promise<ReadonlySet<string>> {
    const byHash = await this.hashesOf(ids);
    if (byHash.size === 0) return new Set();
    const { rows } = await this.#client.query<{ hash: Buffer }>({
      name: 'look up suppressions',
      // The filters still contain hashes that were lifted. Each erasure of a person adds a suppression, and one is enough.
      text: `
        select s.hash from unnest($2::bytea[]) as h(hash)
        cross join lateral (
          select hash from suppressions
          where organisation_id = $1 and hash = h.hash and lifted_at is null limit 1) as s`,
      values: [this.#organisationId, [...byHash.keys()].map(asBytea)],
    });
    return new Set(rows.flatMap(({ hash }) => byHash.get(hash.toString('hex')) ?? []));
  }

  /** The ids that may be erased, by their hashes in hexadecimal. The same id can be written in several ways. */
  async hashesOf(ids: Iterable<string>): Promise<ReadonlyMap<string, readonly string[]>> {
    const asked = [...ids].filter((id) => this.mayBeErased(id));
    const hashed = await inSlices(asked, (id) =>
      this.#filters.map(({ hasher }) => ({ id, hash: hasher.hashOf(id).toString('hex') })),
    );
    const byHash = Map.groupBy(hashed.flat(), ({ hash }) => hash);
    return new Map([...byHash].map(([hash, of]) => [hash, of.map(({ id }) => id)]));
  }
}

export function asBytea(hex: string): string {
  return `\\x${hex}`;
}

function keyMissing(fingerprints: readonly string[]): RequestError {
  const keys = fingerprints.length === 1 ? 'the key with fingerprint' : 'the keys with the fingerprints';
  return new RequestError('erasure_key_missing', {
    message:
      'This process lacks a key that ids of erased people were hashed with, so it cannot recognise them; the operator ' +
      `has to add ${keys} ${fingerprints.join(', ')} to ERASURE_KEYS of this process.`,
  });
}

export async function currentVersion(client: Client, organisationId: string): Promise<number> {
  const { version } = await queryRow<{ version: number }>(client, {
    name: 'version of suppressions',
    text: 'select suppressions_version as version from tenants where organisation_id = $1',
    values: [organisationId],
  });
  return version;
}

interface HashesRead {
  readonly hashes: Buffer | null;
  readonly last_version: number | null;
  readonly last_hash: Buffer | null;
  readonly count: number;
}

async function addHashes(
  client: Client,
  organisationId: string,
  version: number,
  add: (low: number, high: number) => void,
): Promise<void> {
  let [afterVersion, afterHash] = [version, lastHash];
  for (let hasMore = true; hasMore; ) {
    const { hashes, last_version, last_hash, count } = await queryRow<HashesRead>(client, {
      name: 'read suppressions',
      text: `
        select string_agg(int8send(filter), ''::bytea) as hashes, count(*)::integer as count,
          (array_agg(version order by version desc, hash desc))[1] as last_version,
          (array_agg(hash order by version desc, hash desc))[1] as last_hash
        from (
          select version, hash, filter from suppressions where organisation_id = $1 and (version, hash) > ($2, $3)
          order by version, hash limit ${limits.suppressionsPerRead}) as s`,
      values: [organisationId, afterVersion, afterHash],
    });
    for (let at = 0; hashes !== null && at < hashes.length; at += 8)
      add(hashes.readInt32BE(at + 4), hashes.readInt32BE(at));
    hasMore = count === limits.suppressionsPerRead;
    if (last_version !== null && last_hash !== null) [afterVersion, afterHash] = [last_version, last_hash];
  }
}

/** A value that sorts after all of a version's hashes. */
const lastHash: Buffer = Buffer.alloc(33, 0xff);
