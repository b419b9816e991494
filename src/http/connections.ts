import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

/**
 * The connections of a server, and on which of them something is being answered. Node knows only those as idle on which
 * something was answered before: one that never says anything would hold up the end of the process.
 */
export class Connections {
  readonly #open = new Set<Socket>();
  readonly #silent = new Set<Socket>();
  readonly #answering = new WeakMap<Socket, number>();

  constructor(server: Server) {
    const isTls = server instanceof TlsServer;
    // With TLS requests come on another socket than the one that was accepted, which only carries it.
    server.on('connection', (socket: Socket) => remember(isTls ? this.#silent : this.#open, socket));
    server.on('secureConnection', (socket: Socket) => remember(this.#open, socket));
  }

  begin(socket: Socket): void {
    this.#answering.set(socket, (this.#answering.get(socket) ?? 0) + 1);
  }

  end(socket: Socket): void {
    this.#answering.set(socket, (this.#answering.get(socket) ?? 1) - 1);
  }

  /** Ends those on which nothing was begun; what is still on its way to a client gets there. */
  closeIdle(): void {
    for (const socket of this.#open) if (!this.#answering.get(socket)) socket.destroySoon();
    for (const socket of this.#silent) if (socket.bytesRead === 0) socket.destroySoon();
  }
}

function remember(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
}
