import { FileError } from '../../../../../client/src/parsing/file-error.ts';
import type { Answered, Asked } from './file-worker.ts';

/**
 * Lets a worker read a file, so that the page draws and reacts meanwhile. The worker reads one chunk of rows ahead and then waits:
 * a fast reader does not fill the memory of a slow page.
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
    take({ is: 'failed', message: 'What reads files could not be loaded. Load this page again.' });
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
