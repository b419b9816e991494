import type { RejectionFilter } from '../../api/rejections.ts';
import { shellOptions } from '../../format/shell-word.ts';

/** What the intake command calls the filters. */
export function intakeOptions({ type, code, field, request_id }: RejectionFilter): string {
  return shellOptions({ type, code, field, request: request_id });
}
