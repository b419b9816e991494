import type { Person } from './people.ts';

/** The tables that contain people's records. */
export type Table = 'customers' | 'transactions' | 'student_favourites' | 'interactions';

/**
 * What the answer says about a record. `accepted`: a browser key's answer, which does not reveal whether the person was
 * erased. `rejected`: kept as a rejection, which a replay may store. `refused`: not stored and not kept. `unknown`: there
 * was no answer, or it says so.
 */
export type Outcome = 'stored' | 'accepted' | 'rejected' | 'refused' | 'unknown';

export type Values = Readonly<Record<string, string | null>>;

/** A record that was sent. */
export interface Write {
  /** The table's name. Those with people's records are in `Table`. */
  readonly table: string;
  /** The record's id. Interactions are recognised by their `recommendation_id`, because the service assigns their ids. */
  readonly id: string;
  /** A later version of the record has a higher number and a later `updated`. */
  readonly version: number;
  readonly values: Values;
  readonly student: Person | null;
  readonly user: Person | null;
  /** Whether the record was made to fail. */
  readonly isBroken: boolean;
  startedMs: number;
  endedMs: number;
  outcome: Outcome;
  /** The code of the error, if there is one. */
  code: string | null;
}

/** The personal fields of records that can stay without their person. All other records are deleted. */
const clearedFields: Readonly<Record<string, readonly string[]>> = {
  transactions: ['student_id'],
  interactions: ['student_id', 'user_id', 'city', 'country'],
};

const absent = 'absent';
/** The row as it may be stored: as text, because texts can be compared and printed. */
type Form = string;

/** Returns the person whose record it is: its student, or its user if it has no student. */
export function ownerOf({ student, user }: Pick<Write, 'student' | 'user'>): Person | null {
  return student ?? user;
}

export const formOf = (values: Values): Form => JSON.stringify(values);

/** Whether the record was kept as a rejection. A browser key's answer does not reveal it. */
export function isRejected({ outcome, isBroken }: Write): boolean {
  return outcome === 'rejected' || (outcome === 'accepted' && isBroken);
}

/** Returns the forms in which the write may be found after the round. */
export function formsOf(write: Write): Set<Form> {
  const forms = new Set<Form>();
  if (write.outcome === 'refused') return forms.add(absent);
  if (write.outcome === 'unknown' || isRejected(write)) forms.add(absent);
  const owner = ownerOf(write);
  const mayBeErased = owner?.isErased === true && (write.startedMs < owner.liftedMs || owner.isUncertain);
  const mayBeThere = !owner?.isErased || write.endedMs > owner.liftSentMs || owner.isUncertain;
  if (mayBeThere) for (const values of maskings(write)) forms.add(formOf(values));
  if (!mayBeErased) return forms;
  const cleared = clearedFields[write.table];
  if (write.outcome === 'accepted' || !cleared || owner.modes.has('delete') || owner.isUncertain)
    forms.add(absent);
  if (cleared && owner.modes.has('anonymise'))
    forms.add(formOf({ ...write.values, ...Object.fromEntries(cleared.map((field) => [field, null])) }));
  return forms;
}

/** Returns the values with and without the user id, as the user of another student's interaction may be erased. */
function maskings({ student, user, values, startedMs, endedMs }: Write): Values[] {
  if (!student || !user?.isErased || user === student) return [values];
  const masked = { ...values, user_id: null };
  return [
    ...(endedMs > user.liftSentMs || user.isUncertain ? [values] : []),
    ...(startedMs < user.liftedMs || user.isUncertain ? [masked] : []),
  ];
}

/** Returns what is wrong with the rows that were found for all writes of one record, or null. */
export function judgeRows(writes: readonly Write[], rows: readonly Values[]): string | null {
  if (rows.length > 1) return 'stored twice';
  const [row] = rows;
  const all = writes.map((write) => ({ version: write.version, forms: formsOf(write) }));
  const required = all.filter(({ forms }) => !forms.has(absent));
  if (!row) return required.length > 0 ? 'lost' : null;
  const found = formOf(row);
  const newest = Math.max(0, ...required.map(({ version }) => version));
  const fitting = all.filter(({ forms }) => forms.has(found));
  if (fitting.length === 0) return 'changed or not erased';
  return fitting.some(({ version }) => version >= newest) ? null : 'an older version';
}

/** Returns what is wrong with the answer to a write, or null. */
export function judgeAnswer(write: Write): string | null {
  const { code, startedMs, endedMs, outcome } = write;
  const owner = ownerOf(write);
  if (owner?.isUncertain) return null;
  if (outcome === 'stored' && owner && isNamed(write, owner) && endedMs < owner.liftSentMs)
    return 'stored after the person’s erasure was answered';
  if (code === null || write.isBroken || outcome === 'unknown') return null;
  if (owner?.isErased && owner.erasedFromMs < endedMs && startedMs < owner.liftedMs) return null;
  // The customer of a lifted erasure has to be uploaded again before records can refer to it.
  if (owner?.isErased && code === 'reference_not_found') return null;
  return code === 'erased' ? 'refused as erased, but nobody was erased' : `failed with ${code}`;
}

function isNamed({ values, startedMs, table }: Write, owner: Person): boolean {
  const id = table === 'customers' ? values.customer_id : (values.student_id ?? values.user_id);
  return startedMs > (owner.namedFromMs.get(id?.toLowerCase() ?? '') ?? Number.POSITIVE_INFINITY);
}
