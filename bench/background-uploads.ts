import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { sendInTurn, withConnections } from './http-load.ts';

/** Uploads that go on until they are told to stop, from a thread of their own: they must not delay whoever measures. */
export interface BackgroundUploads {
  /** Returns how many uploads were answered 200; fails if one was answered otherwise. */
  stop(): Promise<number>;
}

interface Task {
  readonly port: number;
  readonly connections: number;
  /** Sent from the first on, again and again. */
  readonly requests: readonly Uint8Array[];
}

/** Returns when the first upload is answered, so that the service is busy by then. */
export async function startBackgroundUploads(task: Task): Promise<BackgroundUploads> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const failed = new Promise<never>((_, reject) => worker.once('error', reject));
  failed.catch(() => {}); // It is met in one of the races below.
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
