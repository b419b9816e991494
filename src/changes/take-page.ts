import { joinUuidRanges, uuidAt } from '../postgres/binary/encoded-rows.ts';
import { beginAgainUnless } from '../postgres/transactions.ts';
import { firstUuid, timeOfUuidV7 } from '../registry/uuid-v7.ts';
import { afterChange, type ChangeCursors } from './change-cursor.ts';
import { type ChangePage, type ChangesAsked, expired, type Part, type RecordsRead } from './read-changes.ts';

/** `place` is the index of the part's first id in the page. */
interface PlacedPart extends Part {
  readonly place: number;
}

/**
 * Passes each entry to `take` as JSON, in page order. All records of a type are read in one statement, even if types
 * alternate in the page. One statement per run of the same type would mean 64 statements for a mixed page. Each entry
 * is passed on as soon as its turn comes, because keeping a page in memory cost more in garbage collection than all
 * other work on the page. `onLastAnswer` is called when PostgreSQL starts to answer the last statement.
 */
export async function takePage(
  { cursors, records }: ChangesAsked,
  { parts }: ChangePage,
  take: (change: string) => void,
  onLastAnswer = () => {},
): Promise<void> {
  const inOrder = new InOrder(take);
  const all = placed(parts);
  for (const part of all.filter(({ isExpiry }) => isExpiry)) inOrder.put(part.place, expiryOf(part, cursors));
  const byType = Map.groupBy(
    all.filter(({ isExpiry }) => !isExpiry),
    ({ type }) => type,
  );
  const last = [...byType.keys()].at(-1);
  const reads = [...byType].map(([type, ofType]) =>
    readOf(ofType, cursors, inOrder, type === last ? onLastAnswer : () => {}),
  );
  if (reads.length > 0) await records.read(reads);
  const isWhole = reads.every(({ isComplete }) => isComplete());
  beginAgainUnless(isWhole, 'fewer records were read than requested');
}

function expiryOf(part: Part, cursors: ChangeCursors): string {
  const expiredBefore = timeOfUuidV7(uuidAt(part.ids, 0));
  return `{"cursor":"${cursors.write(afterChange(part))}","type":"${part.type}","expired_before":"${expiredBefore}"}`;
}

function placed(parts: readonly Part[]): PlacedPart[] {
  let place = 0;
  return parts.map((part) => {
    const at = place;
    place += part.end - part.start;
    return { ...part, place: at };
  });
}

/** A record that is gone is reported as deleted. */
function readOf(
  parts: readonly PlacedPart[],
  cursors: ChangeCursors,
  inOrder: InOrder,
  onAnswer: () => void,
): RecordsRead & { isComplete(): boolean } {
  const [{ type }] = parts as [PlacedPart];
  const places = placesOf(parts, cursors);
  let isFirst = true;
  return {
    type,
    ...joinUuidRanges(parts),
    take(id, record) {
      if (isFirst) onAnswer();
      isFirst = false;
      const { part, at, cursor } = places.next().value as Place;
      const place = part.place + at - part.start;
      // With another record's cursor, a reader whose connection breaks here would miss this record.
      if (id !== uuidAt(part.ids, at))
        throw new Error('records were returned in a different order than requested');
      if (id === firstUuid) return inOrder.put(place, null);
      // If a record has not expired, the only reason for it to be gone is that its person was erased.
      const erased = record === 'null';
      const stored = record === expired ? 'null' : record;
      const deleted = stored === 'null' || stored.includes('"is_deleted":true');
      inOrder.put(
        place,
        `{"cursor":"${cursor}","type":"${type}","id":"${id}","deleted":${deleted},"erased":${erased},"record":${stored}}`,
      );
    },
    isComplete: () => places.next().done === true,
  };
}

interface Place {
  readonly part: PlacedPart;
  readonly at: number;
  /** The cursor after this id. */
  readonly cursor: string;
}

function* placesOf(parts: readonly PlacedPart[], cursors: ChangeCursors): Generator<Place, undefined> {
  for (const part of parts) {
    const within = part.size > 1 ? cursors.within(part) : undefined;
    for (let at = part.start; at < part.end; at++) {
      const isLast = at + 1 === part.size;
      yield { part, at, cursor: within && !isLast ? within(at + 1) : cursors.write(afterChange(part)) };
    }
  }
}

/** Keeps early entries until their turn comes. */
class InOrder {
  readonly #take: (entry: string) => void;
  /** An entry is null if its id was overwritten because the person was erased. */
  readonly #early = new Map<number, string | null>();
  #next = 0;

  constructor(take: (entry: string) => void) {
    this.#take = take;
  }

  put(place: number, entry: string | null): void {
    if (place !== this.#next) {
      this.#early.set(place, entry);
      return;
    }
    if (entry !== null) this.#take(entry);
    this.#next++;
    for (let next = this.#takeEarly(); next !== undefined; next = this.#takeEarly())
      if (next !== null) this.#take(next);
  }

  #takeEarly(): string | null | undefined {
    if (this.#early.size === 0) return undefined;
    const entry = this.#early.get(this.#next);
    if (entry !== undefined) this.#early.delete(this.#next++);
    return entry;
  }
}
