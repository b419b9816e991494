import { limits } from '../limits.ts';
import { type ResourceType, referenceNotFound, referencesOf, resources } from '../registry/resources.ts';
import { type Instant, instantOf } from '../registry/times.ts';
import { compileCheck, type FieldProblem, type Row } from '../registry/validate.ts';
import { WarningCounter } from '../registry/warnings.ts';
import { compare } from '../store/compare.ts';
import { insertNew } from '../store/insert-new.ts';
import { lookUp } from '../store/look-up.ts';
import { type Client, inTransaction, isConflict, type Pool } from '../store/pool.ts';
import { perType } from '../store/tables.ts';
import { upsert } from '../store/upsert.ts';
import { created, failed, type Outcome, stale, unchanged, updated } from './outcome.ts';

/** A record that passed its own check, with its place in the batch. */
interface Candidate {
  readonly index: number;
  readonly row: Row;
}

/** A batch after the checks that need no database: what failed has its outcome, the rest are candidates. */
export interface CheckedBatch {
  readonly outcomes: (Outcome | undefined)[];
  readonly candidates: readonly Candidate[];
  readonly warnings: WarningCounter;
}

const checkOf = perType((type) => ({
  check: compileCheck(resources[type].fields),
  updatedAt: Object.keys(resources[type].fields).indexOf('updated'),
  references: referencesOf(type),
}));

export function checkBatch(
  type: ResourceType,
  records: readonly unknown[],
  now: Date,
  warnings = new WarningCounter(),
): CheckedBatch {
  const { check, updatedAt } = checkOf(type);
  const aheadFrom = instantOf(now.getTime() + limits.updatedAheadMs) ?? Number.POSITIVE_INFINITY;
  const outcomes: (Outcome | undefined)[] = new Array(records.length);
  const candidates: Candidate[] = [];
  for (const [index, record] of records.entries()) {
    const { row, problems } = check(record, warnings.unknownField);
    if (problems) {
      outcomes[index] = failed(...problems);
      continue;
    }
    const updatedValue = row[updatedAt] as Instant | null;
    if (updatedValue !== null && updatedValue > aheadFrom) warnings.updatedInFuture();
    candidates.push({ index, row });
  }
  return { outcomes, candidates, warnings };
}

/** Stores what passed, in one transaction, and returns one outcome per record. */
export async function storeBatch(
  pool: Pool,
  organisationId: string,
  type: ResourceType,
  { outcomes, candidates }: CheckedBatch,
): Promise<Outcome[]> {
  const complete = [...outcomes];
  if (candidates.length > 0) {
    const stored = await retryConflicts(() =>
      inTransaction(pool, (client) => storeCandidates(client, organisationId, type, candidates)),
    );
    for (const [index, outcome] of stored) complete[index] = outcome;
  }
  return complete as Outcome[];
}

/** A transaction that PostgreSQL sacrificed to another's did nothing: it is simply run again. */
async function retryConflicts<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!isConflict(error) || attempt === limits.batchAttemptsMax) throw error;
    }
  }
}

async function storeCandidates(
  client: Client,
  organisationId: string,
  type: ResourceType,
  candidates: readonly Candidate[],
): Promise<Map<number, Outcome>> {
  const outcomes = new Map<number, Outcome>();
  const found = await lookUp(
    client,
    organisationId,
    type,
    candidates.map(({ row }) => row),
  );
  const sound = candidates.filter(({ index, row }) => {
    const problems = danglingReferences(type, row, found.missing);
    if (problems.length > 0) outcomes.set(index, failed(...problems));
    return problems.length === 0;
  });
  for (const [at, wave] of wavesOf(sound).entries()) {
    const looksNew = at === 0 && !found.seenBefore;
    await storeWave(client, organisationId, type, wave, looksNew, outcomes);
  }
  return outcomes;
}

function danglingReferences(
  type: ResourceType,
  row: Row,
  missing: readonly ReadonlySet<string>[],
): FieldProblem[] {
  return checkOf(type).references.flatMap(({ field, position, type: referenced }, at) =>
    missing[at]?.has(row[position] as string) ? [{ field, ...referenceNotFound(referenced) }] : [],
  );
}

/**
 * PostgreSQL's `on conflict` cannot meet one id twice in a statement, and keeping only the last would be wrong (stored
 * T5, then T3, none, T4 must end at T4). So the k-th occurrence of an id goes into the k-th wave. Nearly always there
 * is one.
 */
function wavesOf(candidates: readonly Candidate[]): Candidate[][] {
  const waves: Candidate[][] = [];
  const seen = new Map<string, number>();
  for (const candidate of candidates) {
    const id = idOf(candidate.row);
    const wave = seen.get(id) ?? 0;
    seen.set(id, wave + 1);
    if (waves[wave]) waves[wave].push(candidate);
    else waves[wave] = [candidate];
  }
  return waves;
}

/**
 * Two ways to the same end. What looks new is inserted, and only what turns out to be stored is compared; what looks as
 * if it had been sent before is compared first. The guess decides how fast it goes, never what the answer is.
 */
async function storeWave(
  client: Client,
  organisationId: string,
  type: ResourceType,
  wave: readonly Candidate[],
  looksNew: boolean,
  outcomes: Map<number, Outcome>,
): Promise<void> {
  const rows = wave.map(({ row }) => row);
  const inserted = looksNew ? await insertNew(client, organisationId, type, rows) : new Set<string>();
  const known = rows.filter((row) => !inserted.has(idOf(row)));
  const settled =
    known.length > 0 ? await compare(client, organisationId, type, known) : new Map<string, never>();
  const differing = known.filter((row) => !settled.has(idOf(row)));
  const written =
    differing.length > 0 ? await upsert(client, organisationId, type, differing) : new Map<string, never>();
  for (const { index, row } of wave) {
    const id = idOf(row);
    outcomes.set(
      index,
      inserted.has(id) ? created : outcomeNamed[settled.get(id) ?? written.get(id) ?? 'stale'],
    );
  }
}

const outcomeNamed = { created, updated, unchanged, stale };

function idOf(row: Row): string {
  return row[0] as string;
}
