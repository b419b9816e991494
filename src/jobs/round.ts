/** The time for which a chore works before the others of its loop get their turn. */
export class Round {
  /** Cancels a statement that may take longer than a round. */
  readonly stopping: AbortSignal | undefined;
  readonly #endMs: number;

  constructor(ms: number = Number.POSITIVE_INFINITY, stopping?: AbortSignal) {
    this.#endMs = performance.now() + ms;
    this.stopping = stopping;
  }

  get leftMs(): number {
    return this.stopping?.aborted ? 0 : Math.max(0, this.#endMs - performance.now());
  }

  get isOver(): boolean {
    return this.leftMs === 0;
  }

  /** `part` returns whether there may be more. Each round does at least one, so even long parts get finished. */
  async repeat(part: () => Promise<boolean | undefined>): Promise<'more' | 'all'> {
    while (!this.stopping?.aborted) {
      if (!(await part())) return 'all';
      if (this.isOver) break;
    }
    return 'more';
  }
}
