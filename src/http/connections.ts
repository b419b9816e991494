import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

interface Open {
  /** What is being answered on it, in the order of the requests. */
  readonly answering: ServerResponse[];
  /** When it was opened, or the last answer was sent. */
  idleSinceMs: number;
}

/**
 * The connections of a server, and on which of them something is being answered. Node knows only those as idle on which
 * something was answered before: one that never says anything would hold up the end of the process.
 */
export class Connections {
  readonly #open = new Map<Socket, Open>();
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
    // It may be closed by then.
    const open = this.#open.get(socket);
    const index = open?.answering.indexOf(response) ?? -1;
    if (!open || index < 0) return;
    open.answering.splice(index, 1);
    open.idleSinceMs = performance.now();
  }

  isAnswering(socket: Socket): boolean {
    return (this.#open.get(socket)?.answering.length ?? 0) > 0;
  }

  /** Has each connection end with the last answer that is under way on it. */
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

  /**
   * Ends those on which nothing was begun for `idleMs`: on one that was just opened or used, a request may be on its way.
   * What is still on its way to a client gets there.
   */
  closeIdle(idleMs: number): void {
    const beforeMs = performance.now() - idleMs;
    for (const [socket, { answering, idleSinceMs }] of this.#open)
      if (answering.length === 0 && idleSinceMs <= beforeMs) socket.destroySoon();
    for (const socket of this.#carriers) if (socket.bytesRead === 0) socket.destroySoon();
  }
}
