import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A certificate for this machine, and its key. Each is in its own file. */
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

/** Creates a certificate that is valid between two moments, which may be in the past or in the future. */
export function makeDatedCertificate(folder: string, name: string, from: Date, to: Date): Certificate {
  const { certFile: first, keyFile } = makeCertificate(folder, name);
  const authority = join(folder, `${name}-authority`);
  mkdirSync(authority);
  writeFileSync(join(authority, 'index'), '');
  const settings = [
    '[ca]',
    'default_ca = own',
    '[own]',
    `database = ${join(authority, 'index')}`,
    `new_certs_dir = ${authority}`,
    'rand_serial = yes',
    'default_md = sha256',
    'policy = any',
    'x509_extensions = names',
    '[names]',
    'subjectAltName = IP:127.0.0.1,DNS:localhost',
    '[any]',
    'commonName = supplied',
  ];
  const [config, request] = [join(authority, 'settings'), join(authority, 'request.pem')];
  const certFile = join(folder, `${name}-dated-cert.pem`);
  writeFileSync(config, settings.join('\n'));
  const run = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  run('x509', '-x509toreq', '-in', first, '-signkey', keyFile, '-out', request);
  const dates = ['-startdate', stampOf(from), '-enddate', stampOf(to)];
  const files = ['-config', config, '-keyfile', keyFile, '-in', request, '-out', certFile];
  run('ca', '-batch', '-notext', '-selfsign', ...dates, ...files);
  const pem = readFileSync(certFile);
  return { certFile, keyFile, pem, fingerprint: new X509Certificate(pem).fingerprint256 };
}

/** Formats a time like 20261117054000Z. */
const stampOf = (moment: Date) => `${moment.toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`;
