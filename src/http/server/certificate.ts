import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:tls';
import type { FastifyBaseLogger } from 'fastify';
import { type Config, checkCertificate, OutOfDate } from '../../config.ts';
import { limits } from '../../limits.ts';

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

type Age = 'expires soon' | 'expired';

interface CertificateEvents {
  replaced(): void;
  /** Called if the new files cannot be used. The same reason is reported only once. */
  refused(error: unknown): void;
  /** Called once when a certificate is about to expire, and once when it has expired. */
  aged(age: Age, expires: Date): void;
}

/** Polls its files, because replacing them by a symbolic link, as container secrets do, triggers no reliable event. */
export class Certificate {
  readonly #files: NonNullable<Config['tls']>;
  readonly #servers: Server[] = [];
  #pair: Pair;
  /** The last pair that was read, valid or not. It prevents a pair from being tried or reported twice. */
  #seen: Pair;
  #reported = '';
  #age: Age | 'valid' = 'valid';

  constructor(files: NonNullable<Config['tls']>) {
    this.#files = files;
    this.#pair = { cert: readFileSync(files.certFile), key: readFileSync(files.keyFile) };
    this.#seen = this.#pair;
  }

  get pair(): Pair {
    return this.#pair;
  }

  get expires(): Date {
    return new X509Certificate(this.#pair.cert).validToDate;
  }

  /** Open connections keep the certificate that they have. */
  useFor(server: Server): void {
    this.#servers.push(server);
  }

  watch(events: CertificateEvents): () => void {
    const look = async () => {
      await this.#look(events);
      this.#lookAtAge(events);
    };
    this.#lookAtAge(events);
    const timer = setInterval(() => void look(), limits.certificateIntervalMs);
    return () => clearInterval(timer);
  }

  async #look({ replaced, refused }: CertificateEvents): Promise<void> {
    try {
      const { certFile, keyFile } = this.#files;
      const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
      if (cert.equals(this.#seen.cert) && key.equals(this.#seen.key)) return;
      const pair = { cert, key };
      try {
        checkCertificate(cert, key);
      } catch (error) {
        // A certificate that is not valid yet may become valid later, so it is tried again.
        if (!(error instanceof OutOfDate)) this.#seen = pair;
        throw error;
      }
      this.#seen = pair;
      for (const server of this.#servers) server.setSecureContext(pair);
      this.#pair = pair;
      this.#reported = '';
      this.#age = 'valid';
      replaced();
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#reported) refused(error);
      this.#reported = message;
    }
  }

  #lookAtAge({ aged }: CertificateEvents): void {
    const { validFromDate: from, validToDate: to } = new X509Certificate(this.#pair.cert);
    const lifeMs = to.getTime() - from.getTime();
    const soonMs = Math.min(limits.certificateSoonMs, limits.certificateSoonPart * lifeMs);
    const leftMs = to.getTime() - Date.now();
    const age = leftMs <= 0 ? 'expired' : leftMs < soonMs ? 'expires soon' : 'valid';
    if (age !== this.#age && age !== 'valid') aged(age, to);
    this.#age = age;
  }
}

export function logged(log: FastifyBaseLogger): CertificateEvents {
  return {
    replaced: () => log.info('the certificate was replaced; new connections get the new one'),
    refused: (error) => log.error({ err: error }, 'the new certificate cannot be used; the old one stays'),
    aged(age, expires) {
      const line = { expires: expires.toISOString() };
      if (age === 'expired')
        log.error(
          line,
          'the TLS certificate has expired, and clients refuse it; replace TLS_CERT_FILE and TLS_KEY_FILE',
        );
      else log.warn(line, 'the TLS certificate expires soon; replace TLS_CERT_FILE and TLS_KEY_FILE');
    },
  };
}
