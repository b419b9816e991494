import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:tls';
import { type Config, checkCertificate } from '../config.ts';
import { limits } from '../limits.ts';

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * The TLS certificate that is served. Its files are polled every two seconds: a file that is replaced through a
 * symbolic link, as container secrets are, sends no reliable event.
 */
export class Certificate {
  readonly #files: NonNullable<Config['tls']>;
  readonly #servers: Server[] = [];
  #pair: Pair;
  /** The last pair that was read, valid or not, so that the same pair is neither tried nor reported twice. */
  #seen: Pair;
  #told = '';

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

  /** New connections to this server get the newest certificate; open ones keep theirs. */
  useFor(server: Server): void {
    this.#servers.push(server);
  }

  /** Calls `onChange` for each new pair, with an error if it cannot be used. Returns a function that stops watching. */
  watch(onChange: (error?: unknown) => void): () => void {
    const timer = setInterval(() => void this.#look(onChange), limits.certificateIntervalMs);
    return () => clearInterval(timer);
  }

  async #look(onChange: (error?: unknown) => void): Promise<void> {
    try {
      const { certFile, keyFile } = this.#files;
      const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
      if (cert.equals(this.#seen.cert) && key.equals(this.#seen.key)) return;
      this.#seen = { cert, key };
      checkCertificate(cert, key);
      for (const server of this.#servers) server.setSecureContext(this.#seen);
      this.#pair = this.#seen;
      this.#told = '';
      onChange();
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#told) onChange(error);
      this.#told = message;
    }
  }
}
