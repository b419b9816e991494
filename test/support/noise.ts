import { connect, type Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Uploads at a fixed rate, whatever the responses are, between the messages `start` and `stop`. A real client would use
 * another machine, but this one is a separate process with the lowest CPU priority that does as little as possible.
 */

setPriority(constants.priority.PRIORITY_LOW);

const [host = '', port = '', key = '', perSecond = ''] = process.argv.slice(2);
const connectionsMax = 50;
const idle: Socket[] = [];
let connections = 0;
let counts: Record<string, number> = {};
let [sent, answered, began] = [0, 0, 0];
let timer: NodeJS.Timeout | undefined;

const head = `POST /v1/data/tags HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;

function upload(): string {
  const body = `{"records":[{"tag_id":"${crypto.randomUUID()}","name":"noise"}]}`;
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}

function open(): Socket {
  connections++;
  const socket = connect(Number(port), host);
  socket.setNoDelay(true);
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    // A connection has only one pending request, so text that is not a status line continues the previous response.
    const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(text) ?? [];
    if (status === undefined) return;
    counts[status] = (counts[status] ?? 0) + 1;
    answered++;
    idle.push(socket);
  });
  socket.on('error', () => {});
  // The server closes idle connections. If a request was pending, its response is lost, so it has no status.
  socket.on('close', () => {
    connections--;
    const at = idle.indexOf(socket);
    if (at >= 0) return idle.splice(at, 1);
    counts['0'] = (counts['0'] ?? 0) + 1;
    answered++;
  });
  return socket;
}

function send(): void {
  for (const due = ((performance.now() - began) / 1_000) * Number(perSecond); sent < due; sent++) {
    const socket = idle.pop() ?? (connections < connectionsMax ? open() : undefined);
    if (!socket) return;
    socket.write(upload());
  }
}

process.on('message', async (message: 'start' | 'stop') => {
  if (message === 'start') {
    [sent, answered, began, counts] = [0, 0, performance.now(), {}];
    timer = setInterval(send, 5);
    return;
  }
  clearInterval(timer);
  const ms = performance.now() - began;
  while (answered < sent) await sleep(5);
  process.send?.({ sent, counts, ms });
});
