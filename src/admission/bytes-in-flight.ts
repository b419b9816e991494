import type { Config } from '../config.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Counted } from './request-limits.ts';

/** The memory reserved for one request's body and answer. */
export interface Holding {
  /** Throws if there is not enough memory. */
  grow(toBytes: number): void;
  /** Succeeds even if there is not enough memory, for responses about data that is already stored. */
  set(bytes: number): void;
  release(): void;
}

/**
 * Limits the memory of bodies and answers in this process. A body that does not fit is refused before it is read. An
 * organisation may reserve three times the memory that is still free. Alone, it gets three quarters of the total, and
 * some memory is always left for the next organisation.
 */
export class BytesInFlight {
  readonly #max: number;
  readonly #perOrganisationMax: number;
  readonly #ofOrganisations = new Map<string, number>();
  /** By client address, for browser keys. It never has more entries than there are requests in progress. */
  readonly #ofVisitors = new Map<string, number>();
  #all = 0;

  constructor({ bytesInFlightMax, bytesInFlightPerOrganisationMax }: Config) {
    this.#max = bytesInFlightMax;
    this.#perOrganisationMax = bytesInFlightPerOrganisationMax;
  }

  get bytes(): number {
    return this.#all;
  }

  hold({ organisationId, limits: own, visitor }: Counted): Holding {
    const ownMax = own.bytes_in_flight_max ?? this.#perOrganisationMax;
    const ofVisitor = visitor === undefined ? undefined : `${organisationId} ${visitor}`;
    let held = 0;
    const set = (bytes: number) => {
      this.#all += bytes - held;
      add(this.#ofOrganisations, organisationId, bytes - held);
      if (ofVisitor !== undefined) add(this.#ofVisitors, ofVisitor, bytes - held);
      held = bytes;
    };
    return {
      set,
      grow: (toBytes) => {
        if (toBytes <= held) return;
        if (ofVisitor !== undefined) this.#refuseTooMuchOfVisitor(ofVisitor, toBytes - held, ownMax);
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

  #refuseTooMuchOfVisitor(visitor: string, more: number, ownMax: number): void {
    const max = Math.min(limits.browserBytesInFlightMax, Math.ceil(ownMax / limits.browserShareOfLimit));
    if ((this.#ofVisitors.get(visitor) ?? 0) + more > max) throw tooMuchOfOne(max, 'address');
  }
}

function add(sums: Map<string, number>, name: string, bytes: number): void {
  if (bytes === 0) return;
  const now = (sums.get(name) ?? 0) + bytes;
  if (now === 0) sums.delete(name);
  else sums.set(name, now);
}

const soon = { 'retry-after': String(limits.retryInFlightSeconds) };

function tooMuchOfOne(max: number, who = 'organisation'): RequestError {
  return new RequestError('too_many_requests', {
    message:
      `This ${who} may have ${max} bytes of bodies and answers in flight at the moment, and this request exceeds that. ` +
      'Read the answers to earlier requests first, or send smaller requests.',
    headers: soon,
  });
}
