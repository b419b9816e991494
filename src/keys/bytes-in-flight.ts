import type { Config } from '../config.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Counted } from './request-limits.ts';

/** Of one request: how much of the memory for bodies and answers it has. */
export interface Holding {
  /** From now on it has so many bytes; refused where that is more than there is room for. */
  grow(toBytes: number): void;
  /** From now on it has so many bytes, whether there is room or not: for the answer to what is stored already. */
  set(bytes: number): void;
  release(): void;
}

/**
 * The bodies and the answers that this process holds at once, for all and for each organisation. What would be more is
 * refused before it is read, so that memory has an end. An organisation may have three times what is still free: alone
 * three quarters of all, and however many there are, something is left for the next.
 */
export class BytesInFlight {
  readonly #max: number;
  readonly #perOrganisationMax: number;
  readonly #ofOrganisations = new Map<string, number>();
  #all = 0;

  constructor({ bytesInFlightMax, bytesInFlightPerOrganisationMax }: Config) {
    this.#max = bytesInFlightMax;
    this.#perOrganisationMax = bytesInFlightPerOrganisationMax;
  }

  /** What is held at the moment, by all. */
  get bytes(): number {
    return this.#all;
  }

  hold({ organisationId, limits: own }: Counted): Holding {
    const ownMax = own.bytes_in_flight_max ?? this.#perOrganisationMax;
    let held = 0;
    const set = (bytes: number) => {
      this.#add(organisationId, bytes - held);
      held = bytes;
    };
    return {
      set,
      grow: (toBytes) => {
        if (toBytes <= held) return;
        this.#refuseTooMuch(organisationId, toBytes - held, ownMax);
        set(toBytes);
      },
      release: () => set(0),
    };
  }

  #refuseTooMuch(organisationId: string, more: number, ownMax: number): void {
    const before = this.#ofOrganisations.get(organisationId) ?? 0;
    if (before + more > ownMax) throw tooMuchOfOne(ownMax);
    const free = this.#max - this.#all - more;
    if (before + more <= limits.shareOfFreeBytesMax * free) return;
    throw before > 0 ? tooMuchOfOne(before) : new RequestError('overloaded', { headers: soon });
  }

  #add(organisationId: string, bytes: number): void {
    if (bytes === 0) return;
    this.#all += bytes;
    const now = (this.#ofOrganisations.get(organisationId) ?? 0) + bytes;
    if (now === 0) this.#ofOrganisations.delete(organisationId);
    else this.#ofOrganisations.set(organisationId, now);
  }
}

const soon = { 'retry-after': String(limits.retryInFlightSeconds) };

function tooMuchOfOne(max: number): RequestError {
  return new RequestError('too_many_requests', {
    message:
      `This organisation may have ${max} bytes of bodies and answers in flight at the moment, and this would be more. ` +
      'Read the answers to the requests before, or send smaller ones.',
    headers: soon,
  });
}
