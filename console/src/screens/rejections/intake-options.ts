import type { RejectionFilter } from '../../api/rejections.ts';

/** What the intake command calls the filters. */
export function intakeOptions({ type, code, field, request_id }: RejectionFilter): string {
  const given = Object.entries({ type, code, field, request: request_id });
  return given.map(([name, value]) => (value === undefined ? '' : ` --${name} ${value}`)).join('');
}
