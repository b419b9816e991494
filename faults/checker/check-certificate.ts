import { createPublicKey, verify } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { comparedTables } from './stored-text.ts';

/** What an erasure's certificate must state. */
export interface Certified {
  readonly organisationId: string;
  readonly erasureId: string;
  readonly mode: string;
  /** The number of ids in the request. */
  readonly people: number;
}

interface Answer {
  readonly certificate: {
    readonly organisation_id: string;
    readonly searched: readonly string[];
    readonly erasure: Readonly<Record<string, unknown>>;
  };
  readonly jws: string;
}

export interface PublicKey {
  readonly key_id: string;
  readonly public_key: string;
}

/** Returns what is wrong with an answer that contains a certificate, or null. */
export function judgeCertificate(
  { certificate, jws }: Answer,
  keys: readonly PublicKey[],
  expected: Certified,
): string | null {
  const [head = '', payload = '', signature = ''] = jws.split('.');
  const decoded = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  const key = keys.find(({ key_id }) => key_id === decoded(head).kid);
  if (!key) return 'its key is not published';
  const bytes = Buffer.from(`${head}.${payload}`);
  if (!verify(null, bytes, createPublicKey(key.public_key), Buffer.from(signature, 'base64url')))
    return 'its signature is wrong';
  if (!isDeepStrictEqual(decoded(payload), certificate)) return 'something else is signed';
  const { erasure, searched, organisation_id } = certificate;
  const { erasure_id, mode, people, state, swept, lake } = erasure;
  const { organisationId, erasureId, mode: wantedMode, people: wantedPeople } = expected;
  if (organisation_id !== organisationId || erasure_id !== erasureId) return 'it is of another erasure';
  if (mode !== wantedMode || people !== wantedPeople) return 'it states another request';
  if ((state !== 'swept' && state !== 'done') || swept === null) return 'it was issued before the sweep';
  if ((lake === 'done') !== searched.includes('files of the lake'))
    return 'it contradicts itself about the lake';
  const personal = comparedTables.filter(
    ({ name, fields }) => name === 'customers' || fields.student_id !== undefined,
  );
  return personal.every(({ name }) => searched.includes(name)) ? null : 'a table was not searched';
}
