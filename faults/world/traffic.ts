/** What the clients' requests met: the statuses, and when requests succeeded. */
export class Traffic {
  readonly statuses = new Map<string, number>();
  /** Successful requests per second since the start. */
  readonly succeeded: number[] = [];
  readonly beganMs = performance.now();
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
      const what = `${init?.method ?? 'GET'} ${new URL(String(input)).pathname}`;
      this.#see(response, what);
      if (response.status >= 500 && response.status !== 503) await this.#judgeError(response.clone(), what);
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
    const nowMs = performance.now();
    const second = Math.floor((nowMs - this.beganMs) / 1_000);
    this.succeeded[second] = (this.succeeded[second] ?? 0) + 1;
    // A 207 can mean that nothing was stored.
    if (status === 207 || !/^POST \/(v1\/data|user-interactions)/.test(what)) return;
    for (const resolve of this.#waiting.splice(0)) resolve(nowMs);
  }

  /** No fault explains an error of the service itself. It cannot know the outcome of a commit whose answer was lost. */
  async #judgeError(response: Response, what: string): Promise<void> {
    if (response.headers.get('x-request-id') === null) return;
    const body = await response.text().catch(() => '');
    if (!/"(outcome_unknown|not_stored)"/.test(body))
      this.#violate('I8: an internal error', { status: response.status, what, body: body.slice(0, 500) });
  }

  /** Resolves with the time of the next write that succeeds, for which PostgreSQL is needed. */
  nextSuccess(): Promise<number> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
