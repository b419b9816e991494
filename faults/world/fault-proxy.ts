import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A TCP proxy between two processes of the world. It forwards bytes faithfully until a fault changes that: it can cut or
 * reset connections, refuse new ones, stall or delay the bytes, and lose answers.
 */
export class FaultProxy {
  readonly port: number;
  /** The port that new connections lead to. */
  target: number;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #refuses = false;
  #stalls = false;
  #delayMs = 0;
  #losesAnswers = false;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    this.target = target;
    server.on('connection', (near: Socket) => this.#open(near));
  }

  static async start(target: number): Promise<FaultProxy> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FaultProxy(server, target);
  }

  get connections(): number {
    return this.#links.size;
  }

  #open(near: Socket): void {
    if (this.#refuses) return void near.resetAndDestroy();
    const far = connect({ port: this.target, host: '127.0.0.1', noDelay: true });
    const link: Link = { near, far, isMute: false };
    this.#links.add(link);
    this.#forward(link, near, far, false);
    this.#forward(link, far, near, true);
    for (const socket of [near, far]) {
      const end = () => {
        this.#links.delete(link);
        near.destroy();
        far.destroy();
      };
      socket.on('close', end).on('error', end);
    }
  }

  /** Forwards in one direction. Later bytes never overtake earlier ones. */
  #forward(link: Link, from: Socket, to: Socket, isAnswer: boolean): void {
    from.on('data', async (bytes) => {
      if (isAnswer && this.#losesAnswers) link.isMute = true;
      if (isAnswer && link.isMute) return;
      if (this.#delayMs > 0 || this.#stalls) {
        from.pause();
        if (this.#delayMs > 0) await sleep(this.#delayMs);
        while (this.#stalls) await sleep(20);
        from.resume();
      }
      if (!to.destroyed && !to.write(bytes)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
    });
  }

  /** Closes a share of the connections, in order or with a reset. */
  cut(share: number, chance: () => number, isReset: boolean): void {
    for (const { near, far } of [...this.#links]) {
      if (chance() >= share) continue;
      for (const socket of [near, far]) {
        if (isReset) socket.resetAndDestroy();
        else socket.destroy();
      }
    }
  }

  /** Resets all connections and new ones for this time, as if the other side's machine was gone. */
  async refuse(ms: number): Promise<void> {
    this.#refuses = true;
    this.cut(1, () => 0, true);
    await sleep(ms);
    this.#refuses = false;
  }

  /** Keeps connections open for this time without forwarding anything. */
  async stall(ms: number): Promise<void> {
    this.#stalls = true;
    await sleep(ms);
    this.#stalls = false;
  }

  /** Delays everything that arrives in this time. */
  async delay(eachMs: number, ms: number): Promise<void> {
    this.#delayMs = eachMs;
    await sleep(ms);
    this.#delayMs = 0;
  }

  /** Lets requests through for this time but loses their answers. Then it closes the connections that lost one. */
  async loseAnswers(ms: number): Promise<void> {
    this.#losesAnswers = true;
    await sleep(ms);
    this.#losesAnswers = false;
    for (const { near, far, isMute } of [...this.#links]) {
      if (!isMute) continue;
      near.resetAndDestroy();
      far.destroy();
    }
  }

  /** Closes all connections and leads new ones to another port. */
  leadTo(port: number): void {
    this.target = port;
    this.cut(1, () => 0, true);
  }

  close(): void {
    this.#server.close();
    this.cut(1, () => 0, false);
  }
}

interface Link {
  readonly near: Socket;
  readonly far: Socket;
  isMute: boolean;
}
