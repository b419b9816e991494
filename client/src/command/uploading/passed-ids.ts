import { itemTypes, resources, type UploadType } from '../../generated/resources.ts';
import { referencedBy } from '../../parsing/values/derived-id.ts';
import { IdSet } from '../../uploading/id-set.ts';
import type { Outcome } from '../../uploading/send-cuts.ts';
import { grouped, warn } from '../terminal/terminal.ts';
import type { FileCut } from './file-cut.ts';

/** The maximum number of ids remembered per type. This many ids take 150 MB of memory. */
const idsMax = 4_000_000;

const referencedTypes = new Set<UploadType>([
  ...Object.values(resources).flatMap(({ references }) => Object.values(references)),
  ...Object.values(itemTypes),
]);

/**
 * The ids of the records that passed a dry run. An upload stores these records before the records that refer to them, but a
 * dry run stores nothing, so the service reports such references as missing.
 */
export class PassedIds {
  readonly #seen = new Map<UploadType, { readonly ids: IdSet; count: number }>();

  /** Returns the outcome as it would be if the records that passed earlier in this run were stored. */
  settle(type: UploadType, cut: FileCut, outcome: Outcome): Outcome {
    const left = outcome.failed.flatMap(({ index, problems }) => {
      const record = recordAt(cut, index);
      const others = problems.filter(
        ({ code, field }) => !(code === 'reference_not_found' && this.#has(type, field, record)),
      );
      return others.length === 0 ? [] : [{ index, problems: others }];
    });
    this.#add(type, cut, new Set(left.map(({ index }) => index)));
    const passed = outcome.failed.length - left.length;
    const { created, failed } = outcome.counts;
    // Such a record is usually new, because a stored record that refers to a new one is rare.
    const counts = { ...outcome.counts, created: created + passed, failed: failed - passed };
    return { ...outcome, counts, failed: left };
  }

  #has(type: UploadType, field: string | null, record: Record<string, unknown>): boolean {
    const target = field === null ? undefined : referencedBy(type, field, record);
    const id = field === null ? undefined : record[field];
    if (target === undefined || typeof id !== 'string') return false;
    return this.#seen.get(target)?.ids.batchOf(id) !== undefined;
  }

  #add(type: UploadType, cut: FileCut, failed: ReadonlySet<number>): void {
    if (!referencedTypes.has(type)) return;
    const seen = this.#seen.get(type) ?? { ids: new IdSet(), count: 0 };
    this.#seen.set(type, seen);
    for (let index = 0; index < cut.parts.count && seen.count < idsMax; index++) {
      const id = failed.has(index) ? undefined : recordAt(cut, index)[resources[type].idField];
      if (typeof id !== 'string') continue;
      seen.ids.add(id, 0);
      if (++seen.count === idsMax)
        warn(`Only the first ${grouped(idsMax)} ids of ${type} are remembered; others count as missing.`);
    }
  }
}

function recordAt({ parts }: FileCut, index: number): Record<string, unknown> {
  return JSON.parse(parts.get(index));
}
