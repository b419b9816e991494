import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A certificate for this machine and the key that belongs to it, each in a file. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly pem: Buffer;
  readonly fingerprint: string;
}

export function makeCertificate(
  folder: string,
  name: string,
  kind: 'ec' | 'rsa' = 'ec',
  days = 1,
): Certificate {
  const [certFile, keyFile] = [join(folder, `${name}-cert.pem`), join(folder, `${name}-key.pem`)];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const kinds = { ec: ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'], rsa: ['rsa:2048'] };
  const made = ['-newkey', ...kinds[kind], '-nodes'];
  const output = ['-keyout', keyFile, '-out', certFile];
  const lasting = ['-days', String(days)];
  execFileSync('openssl', ['req', '-x509', ...lasting, ...made, ...subject, ...output], { stdio: 'pipe' });
  const pem = readFileSync(certFile);
  return { certFile, keyFile, pem, fingerprint: new X509Certificate(pem).fingerprint256 };
}
