import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Client } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';
import { IdFilter } from './id-filter.ts';
import { IdHasher } from './suppression-key.ts';

/** What a process knows of an organisation's suppressions. */
interface Known {
  readonly version: number;
  readonly filters: readonly { readonly hasher: IdHasher; readonly filter: IdFilter }[];
}

const none: Known = { version: 0, filters: [] };

/**
 * Tells whether an id is that of an erased person. Suppressions are read from the database once and kept as filters; whatever
 * writes compares the version, so a process never acts on an old one. A filter is wrong about one id in 100,000; those that it
 * reports are looked up.
 */
export class Suppressions {
  readonly #keys: readonly string[];
  /** Called when an organisation has a new version: a customer who is known to be stored may be gone. */
  onNewVersion: () => void = () => {};
  /** The organisation used longest ago comes first. */
  readonly #known = new Map<string, Known>();
  /** The versions that were read of late, in a cluster. */
  readonly #seen = new Map<string, { readonly version: number; readonly sentMs: number }>();

  /** New hashes are made with the first key; those that were made with the others stay valid. */
  constructor(keys: readonly string[]) {
    this.#keys = keys;
  }

  /** Makes the hashes to store. */
  hasherFor(organisationId: string): IdHasher {
    const [key] = this.#keys;
    if (key === undefined) throw new RequestError('erasure_not_configured');
    return new IdHasher(key, organisationId);
  }

  /** The version that this process knows; 0 if there was no suppression. */
  versionOf(organisationId: string): number {
    return (this.#known.get(organisationId) ?? none).version;
  }

  /** Finds erased people among the ids of records, as of the given version or a later one. */
  async check(client: Client, organisationId: string, version: number): Promise<IdCheck> {
    if (version === 0) return nobodyErased;
    const known = await this.#upTo(client, organisationId, version);
    return new FilteredCheck(client, organisationId, known);
  }

  /** The same, of the version that is current in this transaction. */
  async checkNow(client: Client, organisationId: string): Promise<IdCheck> {
    return this.check(client, organisationId, await currentVersion(client, organisationId));
  }

  /** Which erasure each of these ids belongs to; those of nobody erased are left out. */
  async erasuresOf(
    client: Client,
    organisationId: string,
    ids: Iterable<string>,
  ): Promise<ReadonlyMap<string, string>> {
    const check = await this.checkNow(client, organisationId);
    return check.erasuresOf(ids);
  }

  /** By the version that this process knows, without asking the database: true if one of the ids may be erased. */
  mayBeErased(organisationId: string, ids: readonly (string | null)[]): boolean {
    const { filters } = this.#known.get(organisationId) ?? none;
    return ids.some((id) => id !== null && filters.some((one) => mayHave(one, id)));
  }

  /** Another server answers, which may lack the last erasures. */
  forget(): void {
    this.#known.clear();
    this.#seen.clear();
  }

  /** Notes that the organisation had this version at some time after `sentMs`. */
  noteVersion(organisationId: string, version: number, sentMs: number): void {
    if (this.#seen.size >= limits.versionsSeenMax) this.#seen.clear();
    this.#seen.set(organisationId, { version, sentMs });
  }

  /**
   * Whether this was the version so recently that a transaction which has begun may write by it: the sweep waits for longer before
   * it looks which transactions are running.
   */
  wasCurrent(organisationId: string, version: number): boolean {
    const seen = this.#seen.get(organisationId);
    return seen?.version === version && performance.now() - seen.sentMs < limits.versionSeenMs;
  }

  async #upTo(client: Client, organisationId: string, version: number): Promise<Known> {
    const before = this.#known.get(organisationId);
    if (before && before.version >= version) {
      // Moves it to the end.
      this.#known.delete(organisationId);
      this.#known.set(organisationId, before);
      return before;
    }
    if (this.#keys.length === 0) throw new RequestError('erasure_not_configured');
    const filters =
      before?.filters ??
      this.#keys.map((key) => ({ hasher: new IdHasher(key, organisationId), filter: new IdFilter() }));
    if (!before) {
      const { count } = await queryRow<{ count: number }>(client, {
        name: 'count suppressions',
        text: 'select count(*)::integer as count from suppressions where organisation_id = $1',
        values: [organisationId],
      });
      for (const { filter } of filters) filter.reserve(count);
    }
    await addHashes(client, organisationId, before?.version ?? 0, (low, high) => {
      for (const { filter } of filters) filter.add(low, high);
    });
    const known = { version, filters };
    this.onNewVersion();
    this.#known.delete(organisationId);
    this.#known.set(organisationId, known);
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

/** Asks about ids. */
export interface IdCheck {
  /** Whether there is nothing to ask. */
  readonly isEmpty: boolean;
  /** Whether the id may be that of an erased person. */
  mayBeErased(id: string): boolean;
  /** The same for a UUID whose sixteen bytes begin at `at`. */
  mayBeErasedAt(bytes: DataView, at: number): boolean;
  /** Those of the ids that are. */
  erasedAmong(ids: Iterable<string>): Promise<ReadonlySet<string>>;
  /** The same with the erasure of each. */
  erasuresOf(ids: Iterable<string>): Promise<ReadonlyMap<string, string>>;
}

const nobodyErased: IdCheck = {
  isEmpty: true,
  mayBeErased: () => false,
  mayBeErasedAt: () => false,
  erasedAmong: async () => new Set(),
  erasuresOf: async () => new Map(),
};

class FilteredCheck implements IdCheck {
  readonly isEmpty = false;
  readonly #client: Client;
  readonly #organisationId: string;
  readonly #filters: Known['filters'];

  constructor(client: Client, organisationId: string, { filters }: Known) {
    this.#client = client;
    this.#organisationId = organisationId;
    this.#filters = filters;
  }

  mayBeErased(id: string): boolean {
    return this.#filters.some((one) => mayHave(one, id));
  }

  mayBeErasedAt(bytes: DataView, at: number): boolean {
    return this.#filters.some(({ hasher, filter }) => {
      hasher.short.hash(bytes, at, 16);
      return filter.has(hasher.short);
    });
  }

  async erasedAmong(ids: Iterable<string>): Promise<ReadonlySet<string>> {
    return new Set((await this.erasuresOf(ids)).keys());
  }

  async erasuresOf(ids: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    const asked = [...ids].filter((id) => this.mayBeErased(id));
    if (asked.length === 0) return new Map();
    const byHash = new Map(
      asked.flatMap((id) => this.#filters.map(({ hasher }) => [hasher.hashOf(id).toString('hex'), id])),
    );
    const { rows } = await this.#client.query<{ hash: Buffer; erasure_id: string }>({
      name: 'look up suppressions',
      text: 'select hash, erasure_id from suppressions where organisation_id = $1 and hash = any ($2::bytea[])',
      values: [this.#organisationId, [...byHash.keys()].map((hex) => `\\x${hex}`)],
    });
    return new Map(
      rows.map(({ hash, erasure_id }) => [byHash.get(hash.toString('hex')) as string, erasure_id]),
    );
  }
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
  /** Eight bytes each. */
  readonly hashes: Buffer | null;
  readonly last_version: number | null;
  readonly last_hash: Buffer | null;
  readonly count: number;
}

/** Passes on the short hashes of all suppressions after a version, read in parts. */
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

/** After every hash of a version. */
const lastHash: Buffer = Buffer.alloc(33, 0xff);
