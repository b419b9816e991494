import type { Outcome, Write } from '../../test/fault/erasure-mixture/oracle.ts';
import type { Person } from '../../test/fault/erasure-mixture/people.ts';

/** What is known about a record before it is sent. */
export type Sent = Omit<Write, 'startedMs' | 'endedMs' | 'outcome' | 'code'>;

/** Everything that clients have sent for one organisation, with the answers: the oracle's memory. */
export class Ledger {
  readonly #tables = new Map<string, Map<string, Write[]>>();
  /** The records that were answered since the last check. */
  #touched = new Map<string, Set<string>>();
  /** The number of records that the service has acknowledged. Repeated requests do not count again. */
  acknowledged = 0;

  /** Notes what is about to be sent. Until `settle` is called, the outcome is unknown. */
  begin(sent: readonly Sent[]): Write[] {
    const startedMs = performance.now();
    return sent.map((one) => {
      const write: Write = {
        ...one,
        startedMs,
        endedMs: Number.POSITIVE_INFINITY,
        outcome: 'unknown',
        code: null,
      };
      const table = this.table(one.table);
      const writes = table.get(one.id);
      if (writes) writes.push(write);
      else table.set(one.id, [write]);
      return write;
    });
  }

  /** Notes the answer to a record. */
  settle(write: Write, outcome: Outcome, code: string | null = null): void {
    const isFirst = write.outcome !== outcome;
    // It was lost by a restore, and then its client repeated it.
    const known = this.table(write.table).get(write.id);
    if (known === undefined) this.table(write.table).set(write.id, [write]);
    else if (this.#rewinds > 0 && !known.includes(write)) known.push(write);
    write.endedMs = performance.now();
    write.outcome = outcome;
    write.code = code;
    const touched = this.#touched.get(write.table) ?? new Set();
    this.#touched.set(write.table, touched.add(write.id));
    if (outcome !== 'stored' && outcome !== 'accepted') return;
    if (isFirst) this.acknowledged++;
    this.#forgetOlder(write);
  }

  /**
   * Forgets versions that can never be found again, because a newer one is stored. Versions of people who are erased stay,
   * because what becomes of them depends on when each was sent.
   */
  #forgetOlder(stored: Write): void {
    // A restore may bring an older version back.
    if (stored.outcome !== 'stored' || isOfErased(stored) || this.#remembered) return;
    const table = this.table(stored.table);
    const writes = table.get(stored.id) ?? [];
    if (writes.length < 2) return;
    table.set(
      stored.id,
      writes.filter((write) => write.version >= stored.version || isOfErased(write)),
    );
  }

  table(name: string): Map<string, Write[]> {
    let table = this.#tables.get(name);
    if (!table) {
      table = new Map();
      this.#tables.set(name, table);
    }
    return table;
  }

  get tables(): IterableIterator<string> {
    return this.#tables.keys();
  }

  /** Returns the records that were answered since the last call, by table and id, with what is known of them now. */
  takeTouched(): Map<string, Map<string, readonly Write[]>> {
    const touched = this.#touched;
    this.#touched = new Map();
    const known = [...touched].map(([name, ids]) => {
      const table = this.table(name);
      const copies = [...ids].map(
        (id) => [id, (table.get(id) ?? []).map((write) => ({ ...write }))] as const,
      );
      return [name, new Map<string, readonly Write[]>(copies)] as const;
    });
    return new Map(known);
  }

  #remembered: {
    readonly tables: ReadonlyMap<string, ReadonlyMap<string, Write[]>>;
    readonly fromMs: number;
  } | null = null;
  #rememberedToMs = 0;
  #rewinds = 0;

  /** Remembers everything, because a copy of the database is being made that may replace it. */
  remember(): void {
    const tables = [...this.#tables].map(([name, table]) => {
      const copies = [...table].map(([id, writes]) => [id, writes.map((write) => ({ ...write }))] as const);
      return [name, new Map(copies)] as const;
    });
    this.#remembered = { tables: new Map(tables), fromMs: performance.now() };
  }

  /** The copy contains nothing that is sent from now on. */
  remembered(): void {
    this.#rememberedToMs = performance.now();
  }

  /**
   * The copy has replaced the database. What was answered after the copy is gone, and what was answered or sent while it was
   * made may be in it. Requests that are still being repeated may be stored yet.
   */
  rewind(): void {
    const { tables, fromMs } = this.#remembered ?? { tables: new Map(), fromMs: 0 };
    for (const name of new Set([...tables.keys(), ...this.#tables.keys()])) {
      const before = tables.get(name) ?? new Map<string, Write[]>();
      const table = this.table(name);
      for (const id of new Set([...before.keys(), ...table.keys()])) {
        const known: Write[] = before.get(id) ?? [];
        const settled = known.filter(({ endedMs }) => endedMs <= fromMs);
        const open = (table.get(id) ?? []).filter(({ endedMs }) => endedMs > fromMs);
        const gone = open.filter(
          (write) => write.startedMs > this.#rememberedToMs && Number.isFinite(write.endedMs),
        );
        for (const write of open) if (Number.isFinite(write.endedMs)) write.outcome = 'unknown';
        const left = [...settled, ...open.filter((write) => !gone.includes(write))];
        if (left.length > 0) table.set(id, left);
        else table.delete(id);
      }
    }
    this.#remembered = null;
    this.#rewinds++;
    this.#touched = new Map([...this.#tables].map(([name, table]) => [name, new Set(table.keys())]));
  }

  *everyWrite(): Generator<Write> {
    for (const table of this.#tables.values()) for (const writes of table.values()) yield* writes;
  }
}

const isErased = (person: Person | null) => person?.isErased === true;

export function isOfErased({ student, user }: Write): boolean {
  return isErased(student) || isErased(user);
}
