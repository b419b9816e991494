import { expect, it } from 'vitest';
import { CertificateSigner, certificateOf } from '../../src/erasure/certificate.ts';
import { judgeCertificate } from './check-certificate.ts';

const signer = new CertificateSigner('a key of 32 characters or more for certificates');
const keys = [{ key_id: signer.keyId, public_key: signer.publicPem }];
const swept = {
  erasure_id: '018f2f3e-0000-7000-8000-000000000001',
  mode: 'delete',
  state: 'swept',
  requested: '2026-01-01T00:00:00.000Z',
  key_id: 'one',
  people: 2,
  known: 1,
  rows: { customers: 1 },
  started: '2026-01-01T00:00:01.000Z',
  swept: '2026-01-01T00:00:02.000Z',
  done: null,
  lake: 'done',
  lake_done: '2026-01-01T00:00:03.000Z',
} as const;
const expected = { organisationId: 'one', erasureId: swept.erasure_id, mode: 'delete', people: 2 };

function answer(erasure: typeof swept | object = swept) {
  const certificate = certificateOf('one', { ...swept, ...erasure }, 7, new Date());
  return { certificate, jws: signer.sign(certificate) } as never as Parameters<typeof judgeCertificate>[0];
}

it('accepts a certificate that is signed and true', () => {
  expect(judgeCertificate(answer(), keys, expected)).toBe(null);
});

it('finds what is wrong with a certificate', () => {
  const other = new CertificateSigner('another key of 32 characters or more');
  const judged = (one: ReturnType<typeof answer>, those = keys) => judgeCertificate(one, those, expected);
  expect(judged(answer(), [])).toMatch('not published');
  expect(judged(answer(), [{ ...keys[0], public_key: other.publicPem } as (typeof keys)[0]])).toMatch(
    'signature',
  );
  expect(judged({ ...answer(), certificate: answer({ people: 3 }).certificate })).toMatch('something else');
  expect(judged(answer({ people: 3 }))).toMatch('another request');
  expect(judged(answer({ erasure_id: '018f2f3e-0000-7000-8000-000000000002' }))).toMatch('another erasure');
  expect(judged(answer({ state: 'running' }))).toMatch('before the sweep');
});
