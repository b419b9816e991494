import { Person } from '../../test/fault/erasure-mixture/people.ts';
import { many } from '../../test/support/new-records.ts';
import { Ledger } from '../checker/ledger.ts';
import { idOf, poolSizes } from './records.ts';
import type { World } from './world.ts';

export interface Key {
  readonly key_id: string;
  readonly key: string;
}

const permissions = [
  ...['data:write', 'data:read', 'interactions:write', 'interactions:read'],
  ...['data:erase', 'data:access'],
];

/** A tenant of the run, with what the oracle knows about it. */
export class Organisation {
  readonly slug: string;
  readonly id: string;
  readonly seed: number;
  readonly ledger = new Ledger();
  /** The keys that clients use. The first one is never revoked. */
  readonly keys: Key[] = [];
  /** The customers, by their index. */
  readonly people: readonly Person[];
  /** The records that a client merges and checks by itself. */
  readonly merged = new Set<string>();
  /** Whether a client may have discarded rejections. */
  mayDiscard = false;
  readonly #tables = new Map<string, number>();

  private constructor(slug: string, id: string, seed: number) {
    this.slug = slug;
    this.id = id;
    this.seed = seed;
    this.people = many(poolSizes.customers, (index) => {
      const customer = idOf(seed, 'customers', index);
      return new Person(idOf(seed, 'users', index), [customer], 'kept');
    });
  }

  /** Some of its uploads: the counts of the answer, by request id. */
  readonly receipts = new Map<string, Readonly<Record<string, number>>>();
  hasLake = false;
  hasReport = false;

  static async create(world: World, slug: string, seed: number): Promise<Organisation> {
    const { body } = await world.admin<{ organisation_id: string }>('POST', '/organisations', { slug });
    const organisation = new Organisation(slug, body.organisation_id, seed);
    for (const { ids } of organisation.people) for (const id of ids) world.personalIds.add(id);
    for (const _ of many(2, () => 0)) await organisation.issueKey(world);
    return organisation;
  }

  /** How often commits were lost. What was expected of keys and receipts before no longer counts. */
  rewinds = 0;

  /** Forgets what a restore or a failover has lost. */
  rewind(): void {
    this.rewinds++;
    this.ledger.rewind();
    this.receipts.clear();
  }

  async switchOn(world: World, more: { readonly lake: boolean; readonly report: boolean }): Promise<void> {
    this.hasLake = more.lake;
    this.hasReport = more.report;
    const body = { lake: more.lake, recommendations_report: more.report };
    const { status } = await world.admin('PATCH', `/organisations/${this.slug}`, body);
    if (status !== 200) throw new Error(`an organisation could not be changed: ${status}`);
  }

  async issueKey(world: World): Promise<Key> {
    const wanted = { organisation: this.slug, permissions };
    const { status, body } = await world.admin<Key>('POST', '/keys', wanted);
    if (status !== 201) throw new Error(`a key could not be issued: ${status} ${JSON.stringify(body)}`);
    this.keys.push(body);
    return body;
  }

  get key(): string {
    return (this.keys[0] as Key).key;
  }

  /** Returns the next version of a table's records. Later versions have a later `updated`. */
  nextVersion(table: string): number {
    const version = (this.#tables.get(table) ?? 0) + 1;
    this.#tables.set(table, version);
    return version;
  }
}
