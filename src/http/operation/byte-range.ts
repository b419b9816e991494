import { RequestError } from '../../errors.ts';

/** A range of bytes that includes `from` and excludes `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

const oneRange = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * Returns the part of a file that the `Range` header requests, or undefined for the whole file. Several ranges in one
 * request are refused, because the response could be larger than the file. As HTTP requires, units other than bytes are
 * ignored, and so is a range whose `If-Range` does not match the current ETag.
 */
export function byteRange(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  bytes: number,
  etag: string,
): ByteRange | undefined {
  const { range, 'if-range': ifRange = etag } = headers;
  if (typeof range !== 'string' || !range.startsWith('bytes=') || ifRange !== etag) return undefined;
  const [, first = '', last = ''] = oneRange.exec(range) ?? [];
  const asked =
    first === ''
      ? { from: Math.max(0, bytes - Number(last)), to: bytes }
      : { from: Number(first), to: last === '' ? bytes : Math.min(Number(last) + 1, bytes) };
  if (asked.from < asked.to) return asked;
  throw new RequestError('range_not_satisfiable', { headers: { 'content-range': `bytes */${bytes}` } });
}
