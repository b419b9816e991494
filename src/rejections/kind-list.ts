import { limits } from '../limits.ts';
import { kindOf, type RejectionKind } from './rejection-kinds.ts';

/** `field` is null if the problem is with the record as a whole. */
export type Problems = readonly {
  readonly field: string | null;
  readonly code: string;
  readonly message: string;
}[];

/**
 * All records with equal problems share one kind. Equal problems are usually the same object, so their text is compared
 * only when an object first occurs. If the batch or the organisation (`isFull`) has too many kinds, further ones are
 * reduced to their first problem. Otherwise, records crafted to fail in different ways would each need their own kind.
 */
export class KindList {
  readonly #type: string;
  readonly #isFull: boolean;
  readonly #numbers = new Map<Problems[number], number>();
  readonly #numbersByText = new Map<string, number>();
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
    const known = this.#numbers.get(problem);
    if (known !== undefined) return known;
    const text = JSON.stringify([problem.field ?? '', problem.code, problem.message]);
    const number = this.#numbersByText.get(text) ?? this.#numbersByText.size;
    this.#numbersByText.set(text, number);
    this.#numbers.set(problem, number);
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
