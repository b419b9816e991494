import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import type { Answered, Asked } from './file-worker.ts';

/**
 * Reads a file in a worker, so that the page stays responsive. The worker reads one chunk of rows ahead and then waits.
 * Otherwise, a fast worker would fill a slow page's memory.
 */
export async function* askWorker(asked: Asked): AsyncGenerator<Answered> {
  const worker = new Worker(new URL('./file-worker.ts', import.meta.url), { type: 'module' });
  const arrived: Answered[] = [];
  let wake = () => {};
  const take = (answered: Answered) => {
    arrived.push(answered);
    wake();
  };
  worker.onmessage = ({ data }: MessageEvent<Answered>) => take(data);
  worker.onerror = () =>
    take({ is: 'failed', message: 'The file reader could not be loaded. Reload this page.' });
  worker.postMessage(asked);
  try {
    for (;;) {
      if (arrived.length === 0)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      const answered = arrived.shift() as Answered;
      if (answered.is === 'unreadable') throw new FileError(...answered.lines);
      if (answered.is === 'failed') throw new Error(answered.message);
      if (answered.is === 'end') return;
      if (answered.is === 'rows') worker.postMessage('next');
      yield answered;
    }
  } finally {
    worker.terminate();
  }
}
