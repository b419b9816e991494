import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';
import type { Suppressions } from '../suppression/suppressions.ts';

type Generation = Map<string, Map<ResourceType, Set<string>>>;

/** The ids that need no lookup, and who was erased: uploads and interactions of a process share them. */
export class KnownReferences {
  #known = new KnownIds();
  readonly suppressions: Suppressions;

  constructor(suppressions: Suppressions) {
    this.suppressions = suppressions;
    suppressions.onNewVersion = () => this.forgetKnown();
  }

  /** Read it only after checking the suppressions, because the check may clear it. */
  get known(): KnownIds {
    return this.#known;
  }

  /**
   * The ids may come from a server that is gone. Called when a connection was lost or another server answers. Replaces the
   * set, so ids that are added to the old one are lost.
   */
  forgetKnown(): void {
    this.#known = new KnownIds();
  }
}

/**
 * Saves looking up ids for each interaction. Clients cannot delete records, and an erasure clears the cache, so an id
 * normally stays valid. The exception is a promoted standby, which may lack the commits of the last few seconds, so no
 * entry is kept for longer than two generations.
 */
export class KnownIds {
  #young: Generation = new Map();
  #old: Generation = new Map();
  #youngCount = 0;
  #youngEndMs = performance.now() + limits.knownIdsGenerationMs;

  has(organisationId: string, type: ResourceType, id: string): boolean {
    this.#age();
    return (
      this.#young.get(organisationId)?.get(type)?.has(id) === true ||
      this.#old.get(organisationId)?.get(type)?.has(id) === true
    );
  }

  /** Call this only after the transaction that found the id has committed. */
  add(organisationId: string, type: ResourceType, id: string): void {
    if (this.has(organisationId, type, id) || this.#youngCount >= limits.knownIdsMax) return;
    const types = getOrSet(this.#young, organisationId, () => new Map());
    const ids = getOrSet(types, type, () => new Set());
    // This stops an organisation with very many references from using up the cache.
    if (ids.size >= limits.knownIdsPerTypeMax) return;
    ids.add(id);
    this.#youngCount++;
  }

  #age(): void {
    const nowMs = performance.now();
    if (nowMs < this.#youngEndMs) return;
    // After a pause of more than one generation, the young ids are too old as well.
    const isLate = nowMs >= this.#youngEndMs + limits.knownIdsGenerationMs;
    this.#old = isLate ? new Map() : this.#young;
    this.#young = new Map();
    this.#youngCount = 0;
    this.#youngEndMs = nowMs + limits.knownIdsGenerationMs;
  }
}

function getOrSet<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
