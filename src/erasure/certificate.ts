import { createPrivateKey, createPublicKey, hash, hkdfSync, type KeyObject, sign } from 'node:crypto';
import { personalTables } from '../people/personal-tables.ts';
import type { Erasure } from './find-erasures.ts';

export interface Certificate {
  readonly service: 'intake';
  readonly organisation_id: string;
  readonly erasure: Erasure;
  /** The tables and files that were searched, whether or not anything was found in them. */
  readonly searched: readonly string[];
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
  // The change log keeps days for at least two days, and drops them within an hour. Two more days are added: the rest
  // of the day of the entry, and one to round up.
  const dropped = new Date(swept + (Math.max(changesKeptDays, 2) + 2) * 24 * 3_600_000).toISOString();
  const { lake } = erasure;
  return {
    service: 'intake',
    organisation_id: organisationId,
    erasure,
    searched: [
      ...personalTables.map(({ name }) => name),
      ...searchedBeside,
      ...(lake === 'done' ? ['files of the lake'] : []),
    ],
    remains: [
      {
        where: 'the last entry of each customer in the change feed: the id alone',
        until: erasure.done ?? `at the latest ${dropped}`,
      },
      ...(lake === 'pending'
        ? [{ where: 'files of the lake', until: 'they have been rewritten, which is pending' }]
        : []),
      {
        where: 'keyed hashes of the ids, to keep them suppressed and to repeat the erasure after a restore',
        until: 'the organisation is removed',
      },
      { where: 'database backups', until: 'the operator deletes the last backup made before the sweep' },
      {
        where: 'exports, and copies of the feed or of the lake',
        until: 'their owners follow the feed or delete them',
      },
    ],
    issued: now.toISOString(),
  };
}

/** The signing key is derived from an erasure key, so no additional secret is needed. */
export class CertificateSigner {
  readonly #key: KeyObject;
  readonly keyId: string;
  readonly publicPem: string;

  constructor(erasureKey: string) {
    const seed = Buffer.from(hkdfSync('sha256', erasureKey, '', 'certificates of erasures', 32));
    // The PKCS #8 prefix of a 32-byte Ed25519 key.
    const head = Buffer.from('302e020100300506032b657004220420', 'hex');
    this.#key = createPrivateKey({ key: Buffer.concat([head, seed]), format: 'der', type: 'pkcs8' });
    this.publicPem = createPublicKey(this.#key).export({ format: 'pem', type: 'spki' }).toString();
    this.keyId = hash('sha256', this.publicPem, 'base64url').slice(0, 16);
  }

  /** Returns a compact JWS (RFC 7515), which any JWS library can verify. */
  sign(certificate: Certificate): string {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${encode({ alg: 'EdDSA', kid: this.keyId })}.${encode(certificate)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#key).toString('base64url')}`;
  }
}

const style = `:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
th, td { padding: 0.2rem 1.5rem 0.2rem 0; text-align: start; vertical-align: top; overflow-wrap: anywhere }
th { min-width: 8rem; font-weight: 600 }
@media (max-width: 40rem) { th, td { display: block; padding-bottom: 0 } td { padding: 0 0 0.5rem } }
pre { white-space: pre-wrap; word-break: break-all }`;

export const certificatePagePolicy =
  `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function certificatePage(certificate: Certificate, jws: string): string {
  const { erasure, searched, remains, issued, organisation_id } = certificate;
  const row = (name: string, value: string) =>
    `<tr><th scope="row">${escaped(name)}</th><td>${escaped(value)}</td></tr>`;
  const rows = Object.entries(erasure.rows).map(([table, count]) => row(table, count.toLocaleString('en')));
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Certificate of erasure ${escaped(erasure.erasure_id)}</title>
<style>${style}</style>
<main>
<h1>Certificate of erasure</h1>
<table>
${row('Erasure', erasure.erasure_id)}
${row('Organisation', organisation_id)}
${row('People', `${erasure.people.toLocaleString('en')} ids, of which ${erasure.known.toLocaleString('en')} were stored customers`)}
${row('Mode', erasure.mode)}
${row('Requested', erasure.requested)}
${row('Hidden and suppressed since', erasure.requested)}
${row('In no table since', erasure.swept ?? '')}
${erasure.lake === null ? '' : row('In no file of the lake since', erasure.lake_done ?? 'pending')}
${row('Issued', issued)}
</table>
<h2>Rows changed or deleted</h2>
<table>${rows.join('\n') || row('none', '0')}</table>
<p>Searched: ${escaped(searched.join(', '))}.</p>
<h2>What remains</h2>
<table>${remains.map(({ where, until }) => row(where, `until ${until}`)).join('\n')}</table>
<h2>Signature</h2>
<p>Ed25519, as a JWS. The public keys are at /v1/erasure-keys.</p>
<pre>${escaped(jws)}</pre>
</main>
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
