import type { Config } from '../config.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Counted } from './request-limits.ts';

/** Of one request: how much of the memory for bodies it has. */
export interface Holding {
  /** From now on it has so many bytes; refused where that is more than there is room for. */
  grow(toBytes: number): void;
  release(): void;
}

/**
 * The bodies that this process holds at once, for all and for each organisation. What would be more is refused before it
 * is read, so that memory has an end and no organisation can have all of it.
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

  hold({ organisationId, limits: own }: Counted): Holding {
    const ownMax = own.bytes_in_flight_max ?? this.#perOrganisationMax;
    let held = 0;
    return {
      grow: (toBytes) => {
        const more = toBytes - held;
        if (more <= 0) return;
        if ((this.#ofOrganisations.get(organisationId) ?? 0) + more > ownMax) throw tooMuchOfOne(ownMax);
        if (this.#all + more > this.#max) throw new RequestError('overloaded', { headers: soon });
        this.#add(organisationId, more);
        held = toBytes;
      },
      release: () => {
        this.#add(organisationId, -held);
        held = 0;
      },
    };
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
      `This organisation may have ${max} bytes of bodies in flight at once, and this would be more; nothing was stored. ` +
      'Wait for an answer before the next request, or send smaller ones.',
    headers: soon,
  });
}
