import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

interface Open {
  /** The pending responses, in the order of their requests. */
  readonly answering: ServerResponse[];
  /** When the connection was opened or its last response was sent. */
  idleSinceMs: number;
}

/** Node counts a connection as idle only after its first response, so a silent one would delay shutdown. */
export class Connections {
  readonly #open = new Map<Socket, Open>();
  /** The accepted TCP sockets below the TLS sockets. Empty without TLS. */
  readonly #carriers = new Set<Socket>();

  constructor(server: Server) {
    const isTls = server instanceof TlsServer;
    // With TLS, requests arrive on the TLS socket, not on the TCP socket that was accepted.
    server.on('connection', (socket: Socket) =>
      isTls ? this.#rememberCarrier(socket) : this.#remember(socket),
    );
    server.on('secureConnection', (socket: Socket) => this.#remember(socket));
  }

  #remember(socket: Socket): void {
    this.#open.set(socket, { answering: [], idleSinceMs: performance.now() });
    socket.once('close', () => this.#open.delete(socket));
  }

  #rememberCarrier(socket: Socket): void {
    this.#carriers.add(socket);
    socket.once('close', () => this.#carriers.delete(socket));
  }

  begin(socket: Socket, response: ServerResponse): void {
    this.#open.get(socket)?.answering.push(response);
  }

  end(socket: Socket, response: ServerResponse): void {
    // The socket may already be closed.
    const open = this.#open.get(socket);
    const index = open?.answering.indexOf(response) ?? -1;
    if (!open || index < 0) return;
    open.answering.splice(index, 1);
    open.idleSinceMs = performance.now();
  }

  isAnswering(socket: Socket): boolean {
    return (this.#open.get(socket)?.answering.length ?? 0) > 0;
  }

  endWithAnswers(): void {
    for (const { answering } of this.#open.values()) {
      const last = answering.at(-1);
      if (last && !last.headersSent) last.setHeader('connection', 'close');
    }
  }

  countUnderWay(): number {
    let count = 0;
    for (const { answering } of this.#open.values()) count += answering.length;
    return count;
  }

  /** A request may be on its way on a connection that was used more recently. Data already written is still delivered. */
  closeIdle(idleMs: number): void {
    const beforeMs = performance.now() - idleMs;
    for (const [socket, { answering, idleSinceMs }] of this.#open)
      if (answering.length === 0 && idleSinceMs <= beforeMs) socket.destroySoon();
    for (const socket of this.#carriers) if (socket.bytesRead === 0) socket.destroySoon();
  }
}
