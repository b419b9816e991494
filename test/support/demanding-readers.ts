import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { constants, setPriority } from 'node:os';

/**
 * Readers of one organisation's data, started and stopped by messages, in a separate process with the lowest priority:
 * `lists` reads pages of rejections one after another, and `streams` opens streams of changes and never reads them.
 */

setPriority(constants.priority.PRIORITY_LOW);

const [url = '', kind = '', count = '', ...keys] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const agent = new Agent({ keepAlive: true });
const sockets = new Set<Socket>();
let isOn = false;
let pages = 0;

const keyOf = (at: number) => keys[at % keys.length] ?? '';

async function readLists(at: number): Promise<void> {
  for (let cursor = ''; isOn; ) {
    const path = `/v1/rejections?limit=1000${cursor}`;
    const headers = { authorization: `Bearer ${keyOf(at)}`, 'accept-encoding': 'gzip, br' };
    const [answer] = await once(get({ hostname, port, path, headers, agent }), 'response');
    let bytes = 0;
    for await (const piece of answer) bytes += piece.length;
    if (answer.statusCode !== 200) throw new Error(`a reader got ${answer.statusCode}`);
    if (bytes > 0) pages++;
    cursor = cursor === '' ? '&cursor=00000000-0000-0000-0000-000000000001' : '';
  }
}

function openStream(at: number): void {
  const socket = connect(Number(port), hostname).on('error', () => {});
  // A reader that leaves is replaced by another one.
  socket.on('close', () => sockets.delete(socket) && isOn && openStream(at));
  socket.write(
    `GET /v1/changes HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${keyOf(at)}\r\n` +
      'Accept: application/x-ndjson\r\n\r\n',
  );
  socket.pause();
  sockets.add(socket);
}

let reading: Promise<unknown> = Promise.resolve();
process.on('message', async (message: 'start' | 'stop') => {
  const all = Array.from({ length: Number(count) }, (_, at) => at);
  isOn = message === 'start';
  if (isOn) {
    pages = 0;
    if (kind === 'streams') for (const at of all) openStream(at);
    else reading = Promise.all(all.map(readLists));
    return;
  }
  await reading;
  for (const socket of sockets) socket.destroy();
  process.send?.({ pages });
});
