import { limits } from '../limits.ts';

/** Something that the client should know, even though no record failed because of it. */
export interface Warning {
  readonly code: 'unknown_field' | 'more_unknown_fields' | 'updated_in_future' | 'repeated_id';
  readonly field: string | null;
  readonly count: number;
  readonly message: string;
}

/** Its memory is bounded, whatever the client sends. */
export class WarningCounter {
  readonly #unknownFields = new Map<string, number>();
  #moreUnknownFields = 0;
  #updatedInFuture = 0;

  readonly unknownField = (name: string): void => {
    // When the maximum number of distinct names is reached, further names are only counted. Most names are shown
    // unchanged, so a known name does not have to be made safe again.
    const isFull = this.#unknownFields.size >= limits.unknownFieldNamesMax;
    const shown = this.#unknownFields.has(name) ? name : shownName(name);
    const count = this.#unknownFields.get(shown);
    if (count === undefined && isFull) this.#moreUnknownFields++;
    else this.#unknownFields.set(shown, (count ?? 0) + 1);
  };

  updatedInFuture(): void {
    this.#updatedInFuture++;
  }

  list(): Warning[] {
    const warnings: Warning[] = [];
    for (const [field, count] of this.#unknownFields) {
      const message = 'is not a known field and was ignored; check its spelling';
      warnings.push({ code: 'unknown_field', field, count, message });
    }
    if (this.#moreUnknownFields > 0) {
      const message = 'further unknown fields were ignored';
      warnings.push({ code: 'more_unknown_fields', field: null, count: this.#moreUnknownFields, message });
    }
    if (this.#updatedInFuture > 0) {
      const message =
        'is more than 24 hours in the future; the record was stored, but nothing older can replace it until then: check the clock or the time zone of the source';
      warnings.push({ code: 'updated_in_future', field: 'updated', count: this.#updatedInFuture, message });
    }
    return warnings;
  }
}

/**
 * Makes a name safe to repeat in a response. It truncates the name at a character boundary (a character has at most two
 * UTF-16 code units), and masks an API key that was sent in place of a name. Receipts store responses, and PostgreSQL
 * cannot read JSON that contains a NUL or half of a surrogate pair.
 */
export function shownName(name: string): string {
  const charactersMax = limits.unknownFieldNameCharactersMax;
  const isReadable = !name.includes('\0') && name.isWellFormed();
  if (name.length <= charactersMax && !name.includes('intake_') && isReadable) return name;
  const harmless = name
    .slice(0, charactersMax * 2)
    .replace(/intake_\w+/g, 'intake_…')
    .replaceAll('\0', '\ufffd')
    .toWellFormed();
  return harmless.length <= charactersMax ? harmless : Array.from(harmless).slice(0, charactersMax).join('');
}
