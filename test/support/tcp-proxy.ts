import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { throughPooler } from './database.ts';

/** A connection through the proxy. */
export interface Link {
  /** Closes the connection immediately in both directions. */
  cut(): void;
  /** Stops forwarding data from the database to the service, and passes the data to `then` instead. */
  muteDatabase(then: (said: Buffer) => void): void;
}

/** A proxy between the service and PostgreSQL that simulates network failures. */
export interface TcpProxy {
  /** The database's URL through the proxy. */
  readonly databaseUrl: string;
  /**
   * Sets a function that is called with the bytes that the service sends to the database, except those that maintenance
   * sends. If the function returns false, the bytes are not forwarded.
   */
  watch(see: (bytes: Buffer, link: Link) => boolean): void;
  unwatch(): void;
  /** Closes every connection, and refuses new ones until `accept` is called. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** Closes existing connections, and connects new ones to another server. */
  leadTo(otherUrl: string): void;
  close(): Promise<void>;
}

const saysMaintenance =
  /insert into leases|repeatable read(?! read only)|index_interaction_partition|set local statement_timeout|old\.rejection_id/;

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
    // Maintenance has its own connections and can commit at any time.
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
