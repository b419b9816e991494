import { limits } from '../limits.ts';
import { kindOf, type RejectionKind } from './rejection-kinds.ts';

/** Why a record failed; `field` is null where it is the record as a whole. */
export type Problems = readonly {
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
}[];

/**
 * The kinds of rejections in a batch. Of one field and one problem there is one object, so that a record's kind is found
 * by what its problems are, not by what they say. Where a batch has very many kinds, or the organisation (`isFull`), later
 * ones are told by their first problem alone: otherwise records made to fail differently would each need a kind of their own.
 */
export class KindList {
  readonly #type: string;
  readonly #isFull: boolean;
  readonly #problems = new Map<Problems[number], number>();
  readonly #kinds = new Map<string, RejectionKind>();

  constructor(type: string, isFull: boolean) {
    this.#type = type;
    this.#isFull = isFull;
  }

  get all(): readonly RejectionKind[] {
    return [...this.#kinds.values()];
  }

  idOf(problems: Problems): string {
    const isFull = this.#isFull || this.#kinds.size >= limits.rejectionKindsPerBatchMax;
    const known = this.#kinds.get(this.#keyOf(problems));
    if (known) return known.kind_id;
    return this.#add(isFull ? problems.slice(0, 1) : problems).kind_id;
  }

  #add(problems: Problems): RejectionKind {
    const key = this.#keyOf(problems);
    const kind = this.#kinds.get(key) ?? kindOf(this.#type, reasonsOf(problems));
    this.#kinds.set(key, kind);
    return kind;
  }

  #keyOf(problems: Problems): string {
    return problems.map((problem) => this.#numberOf(problem)).join();
  }

  #numberOf(problem: Problems[number]): number {
    const number = this.#problems.get(problem) ?? this.#problems.size;
    this.#problems.set(problem, number);
    return number;
  }
}

function reasonsOf(problems: Problems) {
  return {
    fields: problems.map(({ field }) => field ?? ''),
    codes: problems.map(({ code }) => code),
    messages: problems.map(({ message }) => message),
  };
}
