import { FileError } from '../files/file-error.ts';
import { IntakeError } from '../index.ts';
import { UsageError } from './command.ts';

/** An expected error is one sentence; any other is a bug, for which we need the stack. */
export function explain(error: unknown): string {
  if (error instanceof IntakeError) return explainAnswer(error);
  if (error instanceof UsageError || error instanceof FileError) return error.message;
  if ((error as Error).name === 'AbortError') return 'Interrupted.';
  return (error as Error).stack ?? String(error);
}

/** Replaces messages of the service that are written for programs where the command can say it better. */
function explainAnswer({ code, message, details, requestId }: IntakeError): string {
  if (code === 'unauthorized')
    return 'The service does not accept the API key. Run intake login, or correct INTAKE_KEY.';
  const lines = details.map(({ field, message: detail }) => `\n  ${field} ${detail}`);
  return message + lines.join('') + (requestId === null ? '' : `\nRequest id: ${requestId}`);
}
