import { Connection } from '../../../../../client/src/connection.ts';
import { IntakeError } from '../../../../../client/src/errors.ts';
import { type RunEnding, Runs } from '../../../../../client/src/runs.ts';
import { type FileInRun, runNameOf } from '../../../../../client/src/uploading/run-of-files.ts';
import { apiBase } from '../../../api/request.ts';

const heartbeatMs = 60_000;

interface Opening {
  readonly file: FileInRun;
  readonly key: string;
  /** Whether interactions are uploaded although they were uploaded before. */
  readonly again: boolean;
  readonly signal: AbortSignal;
}

/** An open run with one file. Until it ends or is left, heartbeats show that the page is open. */
export class FileRun {
  readonly runId: string;
  readonly #timer = setInterval(() => this.#beat(), heartbeatMs);
  #isBeating = false;

  private constructor(runId: string) {
    this.runId = runId;
  }

  /** Returns undefined if the service has no runs, or does not permit this session to open one. */
  static async open(
    connection: Connection,
    { file, key, again, signal }: Opening,
  ): Promise<FileRun | undefined> {
    const run = { name: runNameOf(file.name), client_version: 'console', files: [file], again };
    try {
      const { run_id } = await new Runs(connection).open(run, { key, signal });
      return new FileRun(run_id);
    } catch (error) {
      if (error instanceof IntakeError && runless.has(error.status)) return undefined;
      throw error;
    }
  }

  async end(connection: Connection, ending: RunEnding, signal: AbortSignal | undefined): Promise<void> {
    await new Runs(connection).end(this.runId, ending, signal && { signal });
    this.leave();
  }

  /** Sends no more heartbeats. */
  leave(): void {
    clearInterval(this.#timer);
  }

  /** A heartbeat that fails is not repeated, because the next one follows. */
  async #beat(): Promise<void> {
    if (this.#isBeating) return;
    this.#isBeating = true;
    const connection = new Connection({ ...service(), retryForMs: 0, onRetry: () => {} });
    await new Runs(connection).heartbeat(this.runId).catch((error) => {
      if (isLost(error)) this.leave();
    });
    this.#isBeating = false;
  }
}

/** Returns how to reach the service, which uses the session cookie and ignores the key. */
export function service(): { readonly url: string; readonly key: string } {
  return { url: location.origin + apiBase(), key: 'console' };
}

const runless: ReadonlySet<number | null> = new Set([403, 404, 405]);

/** Returns whether the run has ended, for example because the same file is being uploaded elsewhere, or is not kept any more. */
export function isLost(error: unknown): boolean {
  return error instanceof IntakeError && (error.code === 'run_ended' || error.code === 'run_not_found');
}

export interface EarlierUpload {
  readonly runId: string;
  /** When it began. */
  readonly opened: string;
}

/** Returns the run that the file of interactions was uploaded in before, if that is why the service refuses it. */
export function earlierUploadOf(error: unknown): EarlierUpload | undefined {
  if (!(error instanceof IntakeError) || error.code !== 'file_uploaded') return undefined;
  const said = [error.message, ...error.details.map(({ message }) => message)].join('\n');
  const [, runId, opened] = /in the run ([0-9a-f-]{36}) \(opened ([^)\s]+)\)/.exec(said) ?? [];
  return runId === undefined || opened === undefined ? undefined : { runId, opened };
}
