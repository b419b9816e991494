import type { UploadType } from '../../generated/resources.ts';
import { checkerOf, type FieldProblem } from './check-record.ts';

interface OtherProblems {
  readonly others: readonly FieldProblem[];
  /** Whether the service rejects the value of every field in `known`. */
  readonly isEachRejected: boolean;
}

/**
 * Returns a function that finds the remaining problems with a record that could not be converted, so that the user can
 * correct all of them in one go. It skips fields that already have a problem. The checker is created on first use, because
 * most files have no such record.
 */
export function otherProblemsOf(type: UploadType, isMerged = false) {
  let check: ReturnType<typeof checkerOf> | undefined;
  return (
    record: Record<string, unknown>,
    known: readonly { readonly field: string | null }[],
  ): OtherProblems => {
    check ??= checkerOf(type, isMerged);
    const found = check(record);
    return {
      others: found.filter(({ field }) => !known.some((problem) => problem.field === field)),
      isEachRejected: known.every(({ field }) => found.some((problem) => problem.field === field)),
    };
  };
}
