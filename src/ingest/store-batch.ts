import { limits } from '../limits.ts';
import { type ResourceType, referenceNotFound, referencesOf } from '../registry/resources.ts';
import type { FieldProblem } from '../registry/validate.ts';
import { compare } from '../store/compare.ts';
import { type EncodedRows, pickRows, uuidAt, uuidsOf } from '../store/encoded-rows.ts';
import { insertNew } from '../store/insert-new.ts';
import { lookUp } from '../store/look-up.ts';
import { type Client, isConflict } from '../store/pool.ts';
import { perType } from '../store/tables.ts';
import { updateStored, upsert } from '../store/upsert.ts';
import type { CheckedBatch } from './batch-builder.ts';
import { created, failed, type Outcome, stale, unchanged, updated } from './outcome.ts';

/** One outcome per record of a batch: the bad ones' own, and for each row at its place the one that is given. */
export function outcomesOf(batch: CheckedBatch, outcomeAt: (place: number) => Outcome): Outcome[] {
  const outcomes: Outcome[] = new Array(batch.received);
  for (const { index, id, problems } of batch.refused) outcomes[index] = failed(id, problems);
  for (const [place, index] of batch.indices.entries()) outcomes[index] = outcomeAt(place);
  return outcomes;
}

/** The id of the row at that place. */
export function idAt({ arrays }: EncodedRows, place: number): string {
  return uuidAt(arrays[0] as Buffer, place);
}

/** What was found while a transaction ran needs it to be begun again: nothing of it is kept. */
export class BeginAgain extends Error {}

/** A transaction that PostgreSQL sacrificed to another's did nothing: it is simply run again, without guessing. */
export async function retryConflicts<T>(run: (mayGuess: boolean) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run(attempt === 1);
    } catch (error) {
      const again = error instanceof BeginAgain || isConflict(error);
      if (!again || attempt === limits.batchAttemptsMax) throw error;
    }
  }
}

export interface StoredRows {
  /** Of each row, at its place. */
  readonly outcomes: readonly Outcome[];
  /** Whether records of the type may be waiting among the rejections. */
  readonly hasRejections: boolean;
}

/** Stores what passed, in the transaction of the batch. */
export async function storeRows(
  client: Client,
  organisationId: string,
  type: ResourceType,
  { rows, sample, referenced, waves }: CheckedBatch,
  mayGuess: boolean,
): Promise<StoredRows> {
  if (rows.count === 0) return { outcomes: [], hasRejections: false };
  const looked = await lookUp(client, organisationId, type, sample, referenced);
  const { missing, seenBefore, hasRejections } = looked;
  const outcomes: Outcome[] = new Array(rows.count);
  const dangles = missing.some((ids) => ids.size > 0);
  if (dangles) failDangling(type, rows, missing, outcomes);
  const comesAgain = new Set((waves[1] ?? []).map((place) => idAt(rows, place)));
  for (const [at, wave] of waves.entries()) {
    const places = dangles ? wave.filter((place) => outcomes[place] === undefined) : wave;
    if (places.length === 0) continue;
    const picked = pickRows(rows, places);
    const guess = at === 0 && mayGuess && !seenBefore && comesAgain.size === 0;
    const stored = guess
      ? await storeNew(client, organisationId, type, picked)
      : await storeKnown(client, organisationId, type, picked, at === 0 ? comesAgain : noIds);
    for (const [position, place] of places.entries()) outcomes[place] = stored[position] as Outcome;
  }
  return { outcomes, hasRejections };
}

const noIds: ReadonlySet<string> = new Set();

const referencesOfType = perType(referencesOf);

/** Puts the outcome of each row that refers to what does not exist at its place. */
export function failDangling(
  type: ResourceType,
  rows: EncodedRows,
  missing: readonly ReadonlySet<string>[],
  outcomes: Outcome[],
): void {
  const columns = referencesOfType(type).map(({ position }) =>
    uuidsOf(rows.arrays[position] as Buffer, rows.count),
  );
  for (let place = 0; place < rows.count; place++) {
    const problems = referencesOfType(type).flatMap(({ field, type: referenced }, at): FieldProblem[] => {
      const id = columns[at]?.[place] ?? null;
      return id !== null && missing[at]?.has(id) ? [{ field, ...referenceNotFound(referenced) }] : [];
    });
    if (problems.length > 0) outcomes[place] = failed(idAt(rows, place), problems);
  }
}

/**
 * Two ways to the same end. What looks new is inserted at once, and only what turns out to be stored is compared; what
 * looks as if it had been sent before is compared first. The guess decides how fast it goes, never what the answer is.
 */
async function storeNew(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rows: EncodedRows,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = new Array(rows.count).fill(created);
  const known = await insertNew(client, organisationId, type, rows);
  if (known.length === 0) return outcomes;
  const compared = await compare(client, organisationId, type, pickRows(rows, known));
  // Updating them now would lock rows out of order, and two such uploads could wait for each other.
  if (compared.absent.length + compared.changed.length > 0) throw new BeginAgain();
  for (const place of known) outcomes[place] = unchanged;
  for (const position of compared.stale) outcomes[known[position] as number] = stale;
  return outcomes;
}

/**
 * Compares, and writes what differs. An id that comes again in a later wave is written now even if nothing changes, so
 * that this one statement takes every lock that the batch will need, in order.
 */
async function storeKnown(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rows: EncodedRows,
  comesAgain: ReadonlySet<string>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = new Array(rows.count).fill(unchanged);
  const { absent, changed, stale: older } = await compare(client, organisationId, type, rows);
  for (const place of older) outcomes[place] = stale;
  if (absent.length === 0 && comesAgain.size === 0) {
    await replaceStored(client, organisationId, type, rows, changed, outcomes);
    return outcomes;
  }
  const differing = [...absent, ...changed].sort((a, b) => a - b);
  const places = comesAgain.size === 0 ? differing : withThoseOf(comesAgain, rows, differing);
  if (places.length > 0) {
    const written = await upsert(client, organisationId, type, pickRows(rows, places));
    for (const place of differing) outcomes[place] = outcomeNamed[written.get(idAt(rows, place)) ?? 'stale'];
  }
  return outcomes;
}

/** The ordinary case of an upload that was sent before: every record is stored, and some have changed. */
async function replaceStored(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rows: EncodedRows,
  places: readonly number[],
  outcomes: Outcome[],
): Promise<void> {
  if (places.length === 0) return;
  const picked = pickRows(rows, places);
  for (const place of places) outcomes[place] = updated;
  if (await updateStored(client, organisationId, type, picked)) return;
  // Somebody stored a newer version since we looked: what was not written is what is older than what is stored now.
  const { stale: older } = await compare(client, organisationId, type, picked);
  for (const position of older) outcomes[places[position] as number] = stale;
}

function withThoseOf(ids: ReadonlySet<string>, rows: EncodedRows, differing: readonly number[]): number[] {
  const differs = new Set(differing);
  return Array.from({ length: rows.count }, (_, place) => place).filter(
    (place) => differs.has(place) || ids.has(idAt(rows, place)),
  );
}

const outcomeNamed = { created, updated, stale };
