import { randomInt, randomUUID } from 'node:crypto';
import type { ResourceType } from '../../src/registry/resources.ts';

type Sent = Record<string, unknown> & { updated: string };

const pick = <T>(values: readonly T[]): T => values[randomInt(values.length)] as T;

/** Adds, changes, deletes and restores records of several types at random, with unusual values. */
export class ChangingRecords {
  readonly #stored = new Map<ResourceType, Map<string, Sent>>();
  #seconds = 0;

  /** Returns a batch of new and changed records of a type. The records that they refer to were in an earlier batch. */
  batch(type: ResourceType, added: number, changed: number): object[] {
    const stored = this.#of(type);
    const ids = [...stored.keys()];
    const chosen = new Set(Array.from({ length: ids.length > 0 ? changed : 0 }, () => pick(ids)));
    const sent = [...chosen, ...Array.from({ length: added }, () => randomUUID())].map((id) =>
      this.#make(type, id),
    );
    for (const record of sent) stored.set(Object.values(record)[0] as string, record);
    return sent;
  }

  /** The types that can be sent, each after the types that it refers to. */
  static readonly types = [
    'shops',
    'customers',
    'tags',
    'offers',
    'branches',
    'transactions',
    'shop-tags',
    'student-favourites',
  ] as const satisfies readonly ResourceType[];

  #of(type: ResourceType): Map<string, Sent> {
    const found = this.#stored.get(type) ?? new Map<string, Sent>();
    this.#stored.set(type, found);
    return found;
  }

  #any(type: ResourceType): string {
    return pick([...this.#of(type).keys()]);
  }

  #make(type: ResourceType, id: string): Sent {
    const updated = new Date(Date.UTC(2026, 0, 1) + 1_000 * this.#seconds++).toISOString();
    const lifecycle = {
      updated,
      is_deleted: randomInt(5) === 0,
      created: pick([null, '2026-03-14T09:26:53.589793Z']),
    };
    const name = pick(['Corner "Bakery"', 'Café\n\u{1f355}', '\\', '{"is_deleted":true}']);
    switch (type) {
      case 'shops':
        return { shop_id: id, name, region: 'GB', is_public: pick([true, false, null]), ...lifecycle };
      case 'customers':
        return {
          customer_id: id,
          user_id: randomUUID(),
          region: 'ES',
          birthdate: pick([null, '2004-02-29', '0001-01-01']),
          gender: pick([null, '', 'female']),
          ...lifecycle,
        };
      case 'tags':
        return { tag_id: id, name, ...lifecycle };
      case 'offers':
        return {
          offer_id: id,
          shop_id: this.#any('shops'),
          name,
          type: 'fixed',
          value: 0.1 + randomInt(1_000),
          region: 'GB',
          allowed_from: pick([null, '0001-01-01T00:00:00Z', '2026-03-14T09:26:53.000001Z']),
          ...lifecycle,
        };
      case 'branches': {
        const place = { latitude: Math.random() * 90, longitude: pick([null, 1e-7, -180]) };
        return { branch_id: id, shop_id: this.#any('shops'), name, region: 'GB', ...place, ...lifecycle };
      }
      case 'transactions':
        return {
          transaction_id: id,
          shop_id: this.#any('shops'),
          region: 'GB',
          savings: pick([0, 2.5]),
          amount: pick([22.49, 0.000000001, 123_456_789.01]),
          student_id: pick([null, randomUUID()]),
          discount_value: pick([null, -3.25]),
          ...lifecycle,
        };
      case 'shop-tags':
        return { shop_tag_id: id, shop_id: this.#any('shops'), tag_id: this.#any('tags'), ...lifecycle };
      case 'student-favourites': {
        const student_id = this.#any('customers');
        return { student_favourite_id: id, student_id, shop_id: this.#any('shops'), ...lifecycle };
      }
      default:
        throw new Error(`no ${type} are made`);
    }
  }
}
