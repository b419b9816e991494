import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { sendInTurn, withConnections } from './http-load.ts';

/** Uploads that run in a separate thread until they are stopped, so that they do not delay the measurement. */
export interface BackgroundUploads {
  /** Stops the uploads and returns how many of them got a 200. Fails if any upload got a different response. */
  stop(): Promise<number>;
}

interface Task {
  readonly port: number;
  readonly connections: number;
  /** The requests, which are sent in order. After the last one, sending starts over with the first. */
  readonly requests: readonly Uint8Array[];
}

/**
 * Starts the uploads. Resolves once the first upload is answered, so that the service is already busy when the
 * measurement starts.
 */
export async function startBackgroundUploads(task: Task): Promise<BackgroundUploads> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const failed = new Promise<never>((_, reject) => worker.once('error', reject));
  failed.catch(() => {}); // One of the races below handles the failure.
  await Promise.race([once(worker, 'message'), failed]);
  return {
    async stop() {
      const last = once(worker, 'message');
      worker.postMessage('stop');
      const [answers] = (await Promise.race([last, failed])) as [number];
      return answers;
    },
  };
}

async function uploadUntilStopped({ port, connections, requests }: Task): Promise<void> {
  let stopped = false;
  let at = 0;
  let answers = 0;
  parentPort?.once('message', () => {
    stopped = true;
  });
  const next = () => (stopped ? undefined : requests[at++ % requests.length]);
  await withConnections(port, connections, (open) =>
    sendInTurn(open, next, ({ status, body }) => {
      if (status !== 200)
        throw new Error(`an upload was answered ${status}: ${body.toString().slice(0, 500)}`);
      if (answers++ === 0) parentPort?.postMessage('started');
    }),
  );
  parentPort?.postMessage(answers);
}

if (!isMainThread) await uploadUntilStopped(workerData as Task);
