// erasure/: erases people: takes requests, sweeps every table, and says how far that has got.

import { createPrivateKey, createPublicKey, hash, hkdfSync, type KeyObject, sign } from 'node:crypto';
import { personalTables } from '../people/personal-tables.ts';
import type { Erasure } from './find-erasures.ts';

/** Proof of an erasure: what it removed, and what remains outside. */
export interface Certificate {
  readonly service: 'intake';
  readonly organisation_id: string;
  readonly erasure: Erasure;
  /** Which tables were searched, whether or not something was found. */
  readonly searched: readonly string[];
  /** Where something may remain, and until when. */
  readonly remains: readonly { readonly where: string; readonly until: string }[];
  readonly issued: string;
}

const searchedBeside = [
  'rejections',
  'receipts',
  'upload_idempotency_keys',
  'interaction_idempotency_keys',
  'changes',
  'report',
  'access_requests',
];

export function certificateOf(
  organisationId: string,
  erasure: Erasure,
  changesKeptDays: number,
  now: Date,
): Certificate {
  const swept = Date.parse(erasure.swept ?? '');
  // A day is dropped when it is older than that, within the hour, and never before two more have passed.
  const dropped = new Date(swept + (Math.max(changesKeptDays, 2) + 2) * 24 * 3_600_000).toISOString();
  return {
    service: 'intake',
    organisation_id: organisationId,
    erasure,
    searched: [...personalTables.map(({ name }) => name), ...searchedBeside],
    remains: [
      {
        where: 'the last entry of each customer in the change feed: the id alone',
        until: erasure.done ?? `at the latest ${dropped}`,
      },
      { where: 'keyed hashes of the ids, so that nobody comes back', until: 'the suppression is lifted' },
      { where: 'backups of the database', until: 'the operator deletes the last one made before the sweep' },
      {
        where: 'copies that readers of the feed and exports have made',
        until: 'they follow the feed or delete them',
      },
    ],
    issued: now.toISOString(),
  };
}

/** Signs certificates with Ed25519. The key is derived from a key for erasures, so there is no other secret to keep. */
export class CertificateSigner {
  readonly #key: KeyObject;
  readonly keyId: string;
  readonly publicPem: string;

  constructor(erasureKey: string) {
    const seed = Buffer.from(hkdfSync('sha256', erasureKey, '', 'certificates of erasures', 32));
    // What PKCS #8 puts before the 32 bytes of an Ed25519 key.
    const head = Buffer.from('302e020100300506032b657004220420', 'hex');
    this.#key = createPrivateKey({ key: Buffer.concat([head, seed]), format: 'der', type: 'pkcs8' });
    this.publicPem = createPublicKey(this.#key).export({ format: 'pem', type: 'spki' }).toString();
    this.keyId = hash('sha256', this.publicPem, 'base64url').slice(0, 16);
  }

  /** A JWS (RFC 7515) in its compact form, which any library for it can verify. */
  sign(certificate: Certificate): string {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${encode({ alg: 'EdDSA', kid: this.keyId })}.${encode(certificate)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#key).toString('base64url')}`;
  }
}

/** The certificate for reading. */
export function certificatePage(certificate: Certificate, jws: string): string {
  const { erasure, searched, remains, issued, organisation_id } = certificate;
  const row = (name: string, value: string) =>
    `<tr><th scope="row">${escaped(name)}</th><td>${escaped(value)}</td></tr>`;
  const rows = Object.entries(erasure.rows).map(([table, count]) => row(table, count.toLocaleString('en')));
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Certificate of erasure ${escaped(erasure.erasure_id)}</title>
<h1>Certificate of erasure</h1>
<table>
${row('Erasure', erasure.erasure_id)}
${row('Organisation', organisation_id)}
${row('People', `${erasure.people.toLocaleString('en')} ids, of which ${erasure.known.toLocaleString('en')} were stored customers`)}
${row('Mode', erasure.mode)}
${row('Requested', erasure.requested)}
${row('Hidden and suppressed since', erasure.requested)}
${row('In no table since', erasure.swept ?? '')}
${row('Issued', issued)}
</table>
<h2>Rows changed or deleted</h2>
<table>${rows.join('\n') || row('none', '0')}</table>
<p>Searched: ${escaped(searched.join(', '))}.</p>
<h2>What remains</h2>
<table>${remains.map(({ where, until }) => row(where, `until ${until}`)).join('\n')}</table>
<h2>Signature</h2>
<p>Ed25519, as a JWS. The public keys are at /v1/erasure-keys.</p>
<pre style="white-space: pre-wrap; word-break: break-all">${escaped(jws)}</pre>
</html>
`;
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
