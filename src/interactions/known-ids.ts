import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';

/** Of each organisation and type, the ids that exist. */
type Generation = Map<string, Map<ResourceType, Set<string>>>;

/**
 * A bounded cache of ids that were found to exist, so that PostgreSQL need not look for them with each interaction. Records
 * are never deleted, so what was there is there, except that a server which takes over from a lost one may lack its last
 * seconds. Nothing stays for longer than two generations.
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

  /** To be called once the statement that found it is committed. */
  add(organisationId: string, type: ResourceType, id: string): void {
    if (this.has(organisationId, type, id) || this.#youngCount >= limits.knownIdsMax) return;
    const types = getOrSet(this.#young, organisationId, () => new Map());
    const ids = getOrSet(types, type, () => new Set());
    // Whoever refers to a great many leaves room for others.
    if (ids.size >= limits.knownIdsPerTypeMax) return;
    ids.add(id);
    this.#youngCount++;
  }

  #age(): void {
    const nowMs = performance.now();
    if (nowMs < this.#youngEndMs) return;
    // A pause of more than a generation makes the young ones too old as well.
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
