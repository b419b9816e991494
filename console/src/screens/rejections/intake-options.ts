import type { RejectionFilter } from '../../api/rejections.ts';
import { shellOptions } from '../../format/shell-word.ts';

/** Returns the filters as options for the intake command. */
export function intakeOptions({ type, code, field, request_id, run_id }: RejectionFilter): string {
  return shellOptions({ type, code, field, request: request_id, run: run_id });
}
