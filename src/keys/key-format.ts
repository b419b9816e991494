import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * An API key is `intake_` + key id + `_` + secret + checksum. Secret scanners recognise the prefix; the checksum
 * detects a mistyped key without a query. Letters and digits only, so that a double click selects it.
 */
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const keyIdBytes = 8;
const keyIdLength = 11;
const secretBytes = 32;
const secretLength = 43;
const checksumLength = 6;
const keyPattern = new RegExp(
  `^intake_([0-9A-Za-z]{${keyIdLength}})_[0-9A-Za-z]{${secretLength}}([0-9A-Za-z]{${checksumLength}})$`,
);

export interface NewKey {
  readonly keyId: string;
  /** The whole key: shown once, never stored. */
  readonly key: string;
}

export function makeKey(): NewKey {
  const keyId = base62(randomBytes(keyIdBytes), keyIdLength);
  const unchecked = `intake_${keyId}_${base62(randomBytes(secretBytes), secretLength)}`;
  return { keyId, key: unchecked + checksum(unchecked) };
}

const tokenPrefix = 'intake_admin_';
const tokenPattern = new RegExp(
  `^${tokenPrefix}[0-9A-Za-z]{${secretLength}}([0-9A-Za-z]{${checksumLength}})$`,
);

/** A token of the admin API: the same, without an id. */
export function makeToken(): string {
  const unchecked = tokenPrefix + base62(randomBytes(secretBytes), secretLength);
  return unchecked + checksum(unchecked);
}

/** Whether it has the form and the checksum of a token: most wrong ones are found out without a query. */
export function isToken(text: string): boolean {
  const [, digits] = tokenPattern.exec(text) ?? [];
  return digits !== undefined && hasChecksum(text, digits);
}

/** The id in a well-formed key whose checksum is right, else undefined. */
export function keyIdOf(key: string): string | undefined {
  const parts = keyPattern.exec(key);
  return parts && hasChecksum(key, parts[2] as string) ? parts[1] : undefined;
}

function hasChecksum(text: string, digits: string): boolean {
  return crc32(text.slice(0, -checksumLength)) === fromBase62(digits);
}

export const keyIdPattern = new RegExp(`^[0-9A-Za-z]{${keyIdLength}}$`);

export function isKeyId(text: string): boolean {
  return keyIdPattern.test(text);
}

/** A key has 256 random bits, so a plain hash is as strong as a slow one. */
export function hashKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

function checksum(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return base62(bytes, checksumLength);
}

/** Without the big integers that encoding needs: this runs for every request. */
function fromBase62(digits: string): number {
  let value = 0;
  for (const digit of digits) value = value * 62 + alphabet.indexOf(digit);
  return value;
}

function base62(bytes: Buffer, length: number): string {
  let rest = BigInt(`0x${bytes.toString('hex')}`);
  let digits = '';
  for (let at = 0; at < length; at++) {
    digits = alphabet.charAt(Number(rest % 62n)) + digits;
    rest /= 62n;
  }
  return digits;
}
