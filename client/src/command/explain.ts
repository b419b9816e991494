import { IntakeError } from '../index.ts';
import { FileError } from '../parsing/file-error.ts';
import { UsageError } from './options/command.ts';

/** The maximum number of details that the service lists. */
const detailsShownMax = 20;

/**
 * Returns the lines to show. An expected error is explained in one sentence. Any other error is a bug and is shown with its
 * stack trace.
 */
export function explain(error: unknown): readonly string[] {
  if (error instanceof IntakeError) return explainAnswer(error);
  if (error instanceof UsageError || error instanceof FileError) return error.lines;
  if ((error as Error).name === 'AbortError') return ['Interrupted.'];
  return ((error as Error).stack ?? String(error)).split('\n');
}

/** Replaces the service's error message, which is written for programs, if the command has a better one. */
function explainAnswer({ code, message, details, requestId }: IntakeError): readonly string[] {
  if (code === 'unauthorized')
    return ['The service does not accept the API key. Run intake login, or correct INTAKE_KEY.'];
  const lines = details.slice(0, detailsShownMax).map(({ field, message: detail }) => `  ${field} ${detail}`);
  return [message, ...lines, ...(requestId === null ? [] : [`Request id: ${requestId}`])];
}
