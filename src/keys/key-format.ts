import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * An API key is `intake_` + key id + `_` + secret + checksum. Secret scanners recognise the prefix, and the checksum
 * detects a mistyped key without a query. A key consists of letters, digits and underscores, so that a double click
 * selects all of it.
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

/** The full key is shown once and never stored. */
export function makeKey(): { readonly keyId: string; readonly key: string } {
  const keyId = base62(randomBytes(keyIdBytes), keyIdLength);
  const unchecked = `intake_${keyId}_${base62(randomBytes(secretBytes), secretLength)}`;
  return { keyId, key: unchecked + checksum(unchecked) };
}

const tokenPrefix = 'intake_admin_';
const tokenPattern = new RegExp(
  `^${tokenPrefix}[0-9A-Za-z]{${secretLength}}([0-9A-Za-z]{${checksumLength}})$`,
);

/** A token has the same format as a key, but no id. */
export function makeToken(): string {
  const unchecked = tokenPrefix + base62(randomBytes(secretBytes), secretLength);
  return unchecked + checksum(unchecked);
}

/** Most wrong tokens are detected by their checksum, without a query. */
export function isToken(text: string): boolean {
  const [, digits] = tokenPattern.exec(text) ?? [];
  return digits !== undefined && hasChecksum(text, digits);
}

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

/** A key has 256 random bits, so a fast hash is as secure as a slow one. */
export function hashKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

function checksum(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return base62(bytes, checksumLength);
}

/** Unlike the encoder, it does not use bigints, because it runs for every request. */
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
