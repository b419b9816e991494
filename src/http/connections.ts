import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

/**
 * The connections of a server, and on which of them something is being answered. Node knows only those as idle on which
 * something was answered before: one that never says anything would hold up the end of the process.
 */
export class Connections {
  /** How many requests are being answered on each. */
  readonly #open = new Map<Socket, number>();
  /** Those that only carry others. */
  readonly #carriers = new Set<Socket>();

  constructor(server: Server) {
    const isTls = server instanceof TlsServer;
    // With TLS requests come on another socket than the one that was accepted, which only carries it.
    server.on('connection', (socket: Socket) =>
      isTls ? this.#rememberCarrier(socket) : this.#remember(socket),
    );
    server.on('secureConnection', (socket: Socket) => this.#remember(socket));
  }

  #remember(socket: Socket): void {
    this.#open.set(socket, 0);
    socket.once('close', () => this.#open.delete(socket));
  }

  #rememberCarrier(socket: Socket): void {
    this.#carriers.add(socket);
    socket.once('close', () => this.#carriers.delete(socket));
  }

  begin(socket: Socket): void {
    this.#count(socket, 1);
  }

  end(socket: Socket): void {
    this.#count(socket, -1);
  }

  #count(socket: Socket, more: 1 | -1): void {
    const answering = this.#open.get(socket);
    // It may be closed by then.
    if (answering !== undefined) this.#open.set(socket, answering + more);
  }

  /** Ends those on which nothing was begun; what is still on its way to a client gets there. */
  closeIdle(): void {
    for (const [socket, answering] of this.#open) if (answering === 0) socket.destroySoon();
    for (const socket of this.#carriers) if (socket.bytesRead === 0) socket.destroySoon();
  }
}
