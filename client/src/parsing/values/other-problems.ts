import type { UploadType } from '../../generated/resources.ts';
import { checkerOf, type FieldProblem } from './check-record.ts';

/**
 * What else is wrong with a record that could not be converted, so that everything can be corrected at once. Fields that
 * have a problem already are left out. Made on first use, because most files have no such record.
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
