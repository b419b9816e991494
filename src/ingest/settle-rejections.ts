import { randomUUIDv7 } from 'node:crypto';
import type { ResourceType } from '../registry/resources.ts';
import { pickRows } from '../store/encoded-rows.ts';
import type { Client } from '../store/pool.ts';
import {
  type DanglingRecord,
  dropStored,
  keepDangling,
  keepRefused,
  markOpen,
  type NewRejection,
  type Reasons,
} from '../store/rejections.ts';
import type { CheckedBatch } from './batch-builder.ts';
import type { Outcome } from './outcome.ts';
import { idAt, type StoredRows } from './store-batch.ts';

interface Where {
  readonly organisationId: string;
  readonly type: ResourceType;
  readonly requestId: string;
  /** Where the batch starts in the request. */
  readonly start: number;
}

/**
 * Keeps what a batch refused, and lets go of what was refused before and is stored now. Returns by how much the number
 * of rejections has changed.
 */
export async function settleRejections(
  client: Client,
  where: Where,
  checked: CheckedBatch,
  { outcomes, hasRejections }: StoredRows,
): Promise<number> {
  const dropped = hasRejections ? await dropThoseStored(client, where, checked, outcomes) : 0;
  const fails = checked.refused.length > 0 || outcomes.some(({ kind }) => kind === 'failed');
  return (fails ? await keep(client, where, checked, outcomes) : 0) - dropped;
}

const isStored = ({ kind }: Outcome) => kind !== 'failed' && kind !== 'stale';

async function dropThoseStored(
  client: Client,
  { organisationId, type }: Where,
  { rows }: CheckedBatch,
  outcomes: readonly Outcome[],
): Promise<number> {
  const places = [...outcomes.keys()].filter((place) => isStored(outcomes[place] as Outcome));
  if (places.length === 0) return 0;
  const ids = { count: rows.count, arrays: rows.arrays.slice(0, 1) };
  return dropStored(client, organisationId, type, pickRows(ids, places).arrays[0] as Buffer);
}

async function keep(
  client: Client,
  { organisationId, type, requestId, start }: Where,
  checked: CheckedBatch,
  outcomes: readonly Outcome[],
): Promise<number> {
  const { rows, indices } = checked;
  // A record that failed and came again, good, in the same batch needs no putting right.
  const storedLast = new Map<string, number>();
  for (const [place, outcome] of outcomes.entries())
    if (isStored(outcome)) storedLast.set(idAt(rows, place), indices[place] as number);
  const isOpen = (id: string | null, index: number) => id === null || (storedLast.get(id) ?? -1) < index;

  const refused = checked.refused.filter(({ id, index }) => isOpen(id, index));
  const dangling = [...outcomes.keys()].filter((place) => {
    const outcome = outcomes[place] as Outcome;
    return outcome.kind === 'failed' && isOpen(outcome.id, indices[place] as number);
  });
  const count = refused.length + dangling.length;
  if (count === 0) return 0;

  const ids = rejectionIds([
    ...refused.map(({ index }) => index),
    ...dangling.map((place) => indices[place] as number),
  ]);
  await markOpen(client, organisationId, type);
  if (refused.length > 0) {
    const kept = refused.map(
      ({ index, id, problems, record }): NewRejection => ({
        rejection_id: ids(index),
        index: start + index,
        record_id: id,
        record,
        ...reasonsOf(problems),
      }),
    );
    await keepRefused(client, organisationId, type, requestId, kept);
  }
  if (dangling.length > 0) {
    const kept = dangling.map((place, position): DanglingRecord => {
      const { problems } = outcomes[place] as Outcome & { kind: 'failed' };
      const index = indices[place] as number;
      return { rejection_id: ids(index), index: start + index, place: position, ...reasonsOf(problems) };
    });
    await keepDangling(client, organisationId, type, requestId, pickRows(rows, dangling), kept);
  }
  return count;
}

/** Ids that ascend as the records do: it is the order in which they will be tried again. */
function rejectionIds(indices: readonly number[]): (index: number) => string {
  const ids = indices.map(() => randomUUIDv7()).sort();
  const byIndex = new Map(indices.toSorted((a, b) => a - b).map((index, at) => [index, ids[at] as string]));
  return (index) => byIndex.get(index) as string;
}

export function reasonsOf(
  problems: readonly { readonly field: string | null; readonly code: string; readonly message: string }[],
): Reasons {
  return {
    fields: problems.map(({ field }) => field ?? ''),
    codes: problems.map(({ code }) => code),
    messages: problems.map(({ message }) => message),
  };
}
