/** What the clients' requests met: the statuses, and when requests succeeded. */
export class Traffic {
  readonly statuses = new Map<string, number>();
  /** Successful requests per second since the start. */
  readonly succeeded: number[] = [];
  readonly beganMs = performance.now();
  lastSuccessMs = 0;
  requests = 0;
  #waiting: ((ms: number) => void)[] = [];
  readonly #violate: (kind: string, detail: unknown) => void;
  readonly #original = globalThis.fetch;

  constructor(violate: (kind: string, detail: unknown) => void) {
    this.#violate = violate;
  }

  /** Sees every request of this process, also those that the library repeats. */
  install(): void {
    globalThis.fetch = async (input, init) => {
      // Clients know only nginx. Everything else is the harness's own.
      if (new URL(String(input)).protocol !== 'https:') return this.#original(input, init);
      this.requests++;
      let response: Response;
      try {
        response = await this.#original(input, init);
      } catch (error) {
        this.#count('no answer');
        throw error;
      }
      this.#see(response, `${init?.method ?? 'GET'} ${new URL(String(input)).pathname}`);
      return response;
    };
  }

  remove(): void {
    globalThis.fetch = this.#original;
  }

  #count(status: string): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }

  #see({ status, headers }: Response, what: string): void {
    // nginx's own answers are HTML.
    const isOurs = headers.get('x-request-id') !== null;
    this.#count(isOurs ? String(status) : `${status} of nginx`);
    if (isOurs && (status === 429 || status === 503) && !headers.has('retry-after'))
      this.#violate('I7: overload without Retry-After', { status, what });
    if (status >= 400) return;
    this.lastSuccessMs = performance.now();
    const second = Math.floor((this.lastSuccessMs - this.beganMs) / 1_000);
    this.succeeded[second] = (this.succeeded[second] ?? 0) + 1;
    for (const resolve of this.#waiting.splice(0)) resolve(this.lastSuccessMs);
  }

  /** Resolves with the time of the next success. */
  nextSuccess(): Promise<number> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
