import { many } from '../../support/new-records.ts';
import type { Random } from './random.ts';

/**
 * What happens to a person in a round: nothing; one erasure; two overlapping ones; an erasure that is lifted; or two
 * overlapping ones, of which one is lifted.
 */
export type Fate = 'kept' | 'erased' | 'erased twice' | 'lifted' | 'lifted once';

export type Mode = 'anonymise' | 'delete';

/**
 * A user, with the customers that have this user id. Visitors and shared computers have no customers. Times are those of
 * the test's monotonic clock.
 */
export class Person {
  readonly userId: string;
  readonly customers: string[];
  readonly fate: Fate;
  readonly modes = new Set<Mode>();
  /** When the first erasure was sent. */
  erasedFromMs = Number.POSITIVE_INFINITY;
  /** When the lift was sent, and when it was answered. They stay infinite if another erasure stands. */
  liftSentMs = Number.POSITIVE_INFINITY;
  liftedMs = Number.POSITIVE_INFINITY;
  /** When an erasure that names the id was answered. */
  readonly namedFromMs = new Map<string, number>();
  /** Whether an erasure may exist that the test knows nothing of, so that lifting the known one may not be enough. */
  isUncertain = false;

  constructor(userId: string, customers: string[], fate: Fate) {
    this.userId = userId;
    this.customers = customers;
    this.fate = fate;
  }

  get isErased(): boolean {
    return this.erasedFromMs < Number.POSITIVE_INFINITY;
  }

  /** Whether the person is erased for good. */
  get staysErased(): boolean {
    return this.isErased && this.liftSentMs === Number.POSITIVE_INFINITY && !this.isUncertain;
  }

  get ids(): string[] {
    return [this.userId, ...this.customers];
  }
}

/** Everything that one round's requests refer to. */
export interface World {
  readonly people: readonly Person[];
  /** People with customers, twice: those who are erased, and those who stay. */
  readonly students: Record<'erased' | 'kept', readonly Person[]>;
  /** Visitors and shared computers. */
  readonly strangers: readonly Person[];
  readonly shops: readonly string[];
  /** Shops that are uploaded only later. Until then, records that refer to them fail. */
  readonly laterShops: readonly string[];
}

const idPattern =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:library-pc|visitor)-[0-9a-f]{8}/g;

/** Returns everything in a text that can be the id of a person. */
export function idsIn(text: string): readonly string[] {
  return text.toLowerCase().match(idPattern) ?? [];
}

/** Draws 2,000 people, a quarter of whom will be erased. */
export function drawWorld(random: Random, size = 2_000): World {
  const fateOf = (at: number): Fate => {
    if (at % 4 !== 0) return 'kept';
    const roll = random.next();
    if (roll < 0.7) return 'erased';
    if (roll < 0.8) return 'erased twice';
    return roll < 0.9 ? 'lifted' : 'lifted once';
  };
  const strangerCount = Math.round(size / 20);
  const students = many(size - strangerCount, (at) => {
    const customers = many(random.chance(0.1) ? 2 + random.below(2) : 1, () => random.uuid());
    return new Person(random.uuid(), customers, fateOf(at));
  });
  const strangers = many(strangerCount, (at) => {
    const name = at % 2 === 0 ? 'library-pc' : 'visitor';
    return new Person(`${name}-${random.hex(8)}`, [], fateOf(Math.floor(at / 2)));
  });
  return {
    people: [...students, ...strangers],
    students: {
      erased: students.filter(({ fate }) => fate !== 'kept'),
      kept: students.filter(({ fate }) => fate === 'kept'),
    },
    strangers,
    shops: many(20, () => random.uuid()),
    laterShops: many(5, () => random.uuid()),
  };
}
