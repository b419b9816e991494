import type { UploadType } from '../../generated/resources.ts';
import { checkerOf, type FieldProblem } from './check-record.ts';

/**
 * Returns a function that finds the remaining problems with a record that could not be converted, so that the user can
 * correct all of them in one go. It skips fields that already have a problem. The checker is created on first use, because
 * most files have no such record.
 */
export function otherProblemsOf(type: UploadType) {
  let check: ReturnType<typeof checkerOf> | undefined;
  return (
    record: Record<string, unknown>,
    known: readonly { readonly field: string | null }[],
  ): readonly FieldProblem[] => {
    check ??= checkerOf(type);
    return check(record).filter(({ field }) => !known.some((problem) => problem.field === field));
  };
}
