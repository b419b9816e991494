import { IntakeError } from '../index.ts';
import { FileError } from '../parsing/file-error.ts';
import { UsageError } from './options/command.ts';

/** As many as the service lists. */
const detailsShownMax = 20;

/** The lines to show. An expected error is one sentence; any other is a bug, for which we need the stack. */
export function explain(error: unknown): readonly string[] {
  if (error instanceof IntakeError) return explainAnswer(error);
  if (error instanceof UsageError || error instanceof FileError) return error.lines;
  if ((error as Error).name === 'AbortError') return ['Interrupted.'];
  return ((error as Error).stack ?? String(error)).split('\n');
}

/** Replaces messages of the service that are written for programs where the command can say it better. */
function explainAnswer({ code, message, details, requestId }: IntakeError): readonly string[] {
  if (code === 'unauthorized')
    return ['The service does not accept the API key. Run intake login, or correct INTAKE_KEY.'];
  const lines = details.slice(0, detailsShownMax).map(({ field, message: detail }) => `  ${field} ${detail}`);
  return [message, ...lines, ...(requestId === null ? [] : [`Request id: ${requestId}`])];
}
