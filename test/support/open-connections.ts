import { connect } from 'node:net';

/**
 * Runs as a separate process, because a test process should not hold this many connections. Opens the connections to a
 * port, a few at a time, and sends nothing. Prints how many are open after all attempts, and again whenever some of
 * them close.
 */

const [port, count] = process.argv.slice(2).map(Number) as [number, number];
const atATime = 200;
let tried = 0;
let open = 0;
let pending = 0;
let told = -1;

function openNext(): void {
  if (tried >= count) return;
  tried++;
  pending++;
  let connected = false;
  const socket = connect(port, '127.0.0.1');
  socket.once('connect', () => {
    connected = true;
    open++;
    pending--;
    openNext();
  });
  socket.once('close', () => {
    if (connected) open--;
    else pending--;
    openNext();
  });
  socket.on('error', () => {}).resume();
}

for (let at = 0; at < atATime; at++) openNext();
setInterval(() => {
  if (tried < count || pending > 0 || open === told) return;
  told = open;
  console.log(open);
});
