import type { RejectionFilter } from '../../api/rejections.ts';
import { shellOptions } from '../../format/shell-word.ts';

/**
 * Returns the same action as an intake command. The command cannot select the rejections of a run, and without that filter it
 * would act on all rejections.
 */
export function intakeCall(
  action: string,
  { type, code, field, request_id, run_id }: RejectionFilter,
): { readonly intake?: string } {
  if (run_id !== undefined) return {};
  return { intake: `intake rejections ${action}${shellOptions({ type, code, field, request: request_id })}` };
}
