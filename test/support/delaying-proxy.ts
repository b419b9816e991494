import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { throughPooler } from './database.ts';

/** A proxy between the service and PostgreSQL that holds back some of the service's statements. */
export interface DelayingProxy {
  /** The database's URL through the proxy. */
  readonly databaseUrl: string;
  /** The number of messages that were held back. */
  readonly pauses: number;
  close(): Promise<void>;
}

/** Returns what these bytes of a connection have to wait for, or null. */
export type Delay = (bytes: Buffer, connection: Socket) => Promise<unknown> | null;

/** Starts the proxy. Later bytes of a connection never overtake earlier ones. */
export async function startDelayingProxy(databaseUrl: string, delay: Delay): Promise<DelayingProxy> {
  const target = new URL(throughPooler(databaseUrl));
  const sockets = new Set<Socket>();
  let pauses = 0;
  const server = createServer((service) => {
    const database = connect(Number(target.port), target.hostname);
    let forwarded = Promise.resolve();
    let isPaused = false;
    service.on('data', (bytes) => {
      const awaited = delay(bytes, service);
      if (!awaited && !isPaused) return void database.write(bytes);
      if (awaited) pauses++;
      isPaused = true;
      const mine = forwarded
        .then(() => awaited)
        .then(() => {
          database.write(bytes);
          if (mine === forwarded) isPaused = false;
        });
      forwarded = mine;
    });
    database.on('data', (bytes) => service.write(bytes));
    for (const [socket, other] of [
      [service, database],
      [database, service],
    ] as const) {
      sockets.add(socket);
      const end = () => {
        sockets.delete(socket);
        other.destroy();
      };
      socket.on('close', end).on('error', end);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const through = new URL(databaseUrl);
  through.port = String((server.address() as AddressInfo).port);
  return {
    databaseUrl: through.href,
    get pauses() {
      return pauses;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

/** A pause of a single message, until the test ends it. */
export interface Hold {
  readonly delay: Delay;
  /** Resolves when the message is held. */
  readonly reached: Promise<void>;
  /** Starts to look for the message. */
  arm(): void;
  release(): void;
}

/** Holds back the first message that fits the pattern after the hold is armed. It is never held for more than a minute. */
export function holdFirst(pattern: RegExp): Hold {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let isArmed = false;
  const release = () => {
    isArmed = false;
    released.resolve();
  };
  return {
    delay(bytes) {
      if (!isArmed || !pattern.test(bytes.toString('latin1'))) return null;
      isArmed = false;
      reached.resolve();
      setTimeout(release, holdMsMax).unref();
      return released.promise;
    },
    reached: reached.promise,
    arm() {
      isArmed = true;
    },
    release,
  };
}

/** Waits until the message is held. A test in which it is never sent would prove nothing. */
export async function expectHeld(hold: Hold): Promise<void> {
  const late = sleep(holdMsMax).then(() => 'not sent');
  expect(await Promise.race([hold.reached.then(() => 'held'), late])).toBe('held');
}

const holdMsMax = 60_000;
