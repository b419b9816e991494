import { once } from 'node:events';
import { connect } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** Change feed readers that run in a separate thread, so that they do not delay the measurement. */
export interface FeedReaders {
  /** The times at which each reader read each marker, according to `clockMs`. */
  readonly arrived: readonly ReadonlyMap<string, number>[];
  stop(): Promise<void>;
}

interface Task {
  readonly port: number;
  readonly key: string;
  readonly after: string;
  readonly readers: number;
}

/** Returns the time of a clock that is the same in every thread. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Starts readers that read the stream, starting at the cursor, and report every marker in it. */
export function startFeedReaders(task: Task): FeedReaders {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const arrived = Array.from({ length: task.readers }, () => new Map<string, number>());
  worker.on('message', ({ reader, id, ms }: Arrival) => arrived[reader]?.set(id, ms));
  return {
    arrived,
    async stop() {
      worker.postMessage('stop');
      await once(worker, 'exit');
    },
  };
}

interface Arrival {
  readonly reader: number;
  readonly id: string;
  readonly ms: number;
}

const markerType = Buffer.from('"type":"tags","id":"');

/**
 * Reads the stream and searches the bytes for markers, because parsing every line would take more CPU time than the
 * service uses.
 */
function follow({ port, key, after }: Task, onMarker: (id: string) => void): () => void {
  const socket = connect({ host: '127.0.0.1', port });
  socket.write(
    `GET /v1/changes?after=${after} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n` +
      'Accept: application/x-ndjson\r\n\r\n',
  );
  const markerBytes = markerType.length + 36;
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    let at = bytes.indexOf(markerType);
    let end = Math.max(0, bytes.length - markerBytes + 1);
    while (at !== -1 && at + markerBytes <= bytes.length) {
      onMarker(bytes.toString('latin1', at + markerType.length, at + markerBytes));
      end = Math.max(end, at + markerBytes);
      at = bytes.indexOf(markerType, at + markerBytes);
    }
    rest = Buffer.from(bytes.subarray(end));
  });
  return () => socket.destroy();
}

if (!isMainThread) {
  const task = workerData as Task;
  const ends = Array.from({ length: task.readers }, (_, reader) =>
    follow(task, (id) => parentPort?.postMessage({ reader, id, ms: clockMs() } satisfies Arrival)),
  );
  parentPort?.once('message', () => {
    for (const end of ends) end();
  });
}
