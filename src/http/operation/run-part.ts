import { invalidRequest } from '../../errors.ts';
import { optional, uuid, wholeNumber } from '../../registry/fields.ts';
import type { RunPart } from '../../runs/enter-run.ts';
import { runLimits } from '../../runs/limits.ts';
import type { Call } from './operation.ts';

/** Query parameters, because a service that does not know them refuses them. */
export const runParameters = {
  run_id: optional(uuid({ description: 'the run that the records belong to; it must not have ended' })),
  file: optional(
    wholeNumber({
      minimum: 0,
      maximum: runLimits.filesMax - 1,
      description: "the index of the records' file in the `files` of the run, from 0",
    }),
  ),
  first_record: optional(
    wholeNumber({
      minimum: 1,
      maximum: 999_999_999_999_999,
      description: 'the number of the first of the records in the file, from 1',
    }),
  ),
};

export function runPartOf({ query }: Pick<Call, 'query'>): RunPart | null {
  const { run_id: runId, file, first_record: firstRecord = null, dry_run: isDryRun } = query;
  if (runId !== undefined && isDryRun === true)
    throw invalidRequest({
      field: 'run_id',
      code: 'not_combinable',
      message: 'cannot be combined with dry_run, which stores nothing',
    });
  if (runId !== undefined && file !== undefined) return { runId, file, firstRecord } as RunPart;
  if (runId === undefined && file === undefined && firstRecord === null) return null;
  const field = runId === undefined ? 'run_id' : 'file';
  const message = 'is missing; send run_id and file together';
  throw invalidRequest({ field, code: 'required', message });
}
