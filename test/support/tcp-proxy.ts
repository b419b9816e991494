import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { throughPooler } from './database.ts';

/** One connection through the proxy, seen from the middle. */
export interface Link {
  /** Ends it in both directions, at once. */
  cut(): void;
  /** From now on nothing the database says reaches the service; `then` is given what it says. */
  muteDatabase(then: (said: Buffer) => void): void;
}

/** Stands between the service and PostgreSQL, and fails as networks do. */
export interface TcpProxy {
  /** The database's address, by way of the proxy. */
  readonly databaseUrl: string;
  /** Sees what the service sends for requests. What it returns false for is not passed on. */
  watch(see: (bytes: Buffer, link: Link) => boolean): void;
  unwatch(): void;
  /** Ends every connection and refuses new ones, until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** New connections go to another server from now on, and those that there are end. */
  leadTo(otherUrl: string): void;
  close(): Promise<void>;
}

const saysMaintenance =
  /insert into leases|repeatable read|index_interaction_partition|set local statement_timeout|old\.rejection_id/;

export async function startTcpProxy(databaseUrl: string): Promise<TcpProxy> {
  let target = new URL(throughPooler(databaseUrl));
  const links = new Set<Link>();
  let see: (bytes: Buffer, link: Link) => boolean = () => true;
  const open = (service: Socket) => {
    const database = connect(Number(target.port), target.hostname);
    let heard: ((said: Buffer) => void) | undefined;
    const link: Link = {
      cut() {
        links.delete(link);
        service.destroy();
        database.destroy();
      },
      muteDatabase(then) {
        heard = then;
      },
    };
    links.add(link);
    // Maintenance has connections of its own, and commits when it pleases.
    let isMaintenance = false;
    service.on('data', (bytes) => {
      isMaintenance ||= saysMaintenance.test(bytes.toString('latin1'));
      if (isMaintenance || see(bytes, link)) database.write(bytes);
    });
    database.on('data', (bytes) => (heard ? heard(bytes) : service.write(bytes)));
    for (const socket of [service, database]) socket.on('close', link.cut).on('error', link.cut);
  };
  let server = await listen(0, open);
  const { port } = server.address() as AddressInfo;
  const through = new URL(databaseUrl);
  through.port = String(port);
  const refuse = async () => {
    if (!server.listening) return;
    server.close();
    for (const link of links) link.cut();
    await once(server, 'close');
  };
  return {
    databaseUrl: through.href,
    watch(watcher) {
      see = watcher;
    },
    unwatch() {
      see = () => true;
    },
    refuse,
    async accept() {
      if (!server.listening) server = await listen(port, open);
    },
    leadTo(otherUrl) {
      target = new URL(otherUrl);
      for (const link of links) link.cut();
    },
    close: refuse,
  };
}

async function listen(port: number, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onConnection).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
