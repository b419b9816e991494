import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Holding } from '../../admission/bytes-in-flight.ts';
import { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';

/** A body as it arrives, decompressed; `receivedEncodedLength` is its size before that. */
export type Payload = Readable & { readonly receivedEncodedLength?: number };

/**
 * Reads a whole body, up to `bytesMax`. Memory is reserved before it is allocated: the announced Content-Length at
 * once, an unannounced body as it grows. Chunks are copied into one buffer, because a chunk of one byte takes hundreds.
 */
export function readBody(
  headers: IncomingHttpHeaders,
  payload: Payload,
  bytesMax: number,
  holding: Holding,
): Promise<Buffer> {
  const announced = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  return new Promise((resolve, reject) => {
    if ((announced ?? 0) > bytesMax) throw new RequestError('body_too_large');
    let body = roomFor(announced ?? limits.bodyBytesAtFirst, holding);
    let length = 0;
    const end = (error?: Error) => {
      payload.off('data', take).off('end', end).off('error', end).off('close', end);
      if (error) {
        payload.pause();
        return reject(asClientFault(error));
      }
      // Also reached if the connection closed early.
      const sent = payload.receivedEncodedLength || length;
      if (!payload.readableEnded || (announced !== undefined && sent !== announced))
        return reject(new RequestError('malformed_request'));
      resolve(body.subarray(0, length));
    };
    const take = (chunk: Buffer) => {
      try {
        const needed = length + chunk.length;
        if (needed > bytesMax) throw new RequestError('body_too_large');
        if (needed > body.length) {
          const larger = roomFor(Math.min(bytesMax, Math.max(needed, 2 * body.length)), holding);
          body.copy(larger, 0, 0, length);
          body = larger;
        }
        chunk.copy(body, length);
        length = needed;
      } catch (error) {
        end(error as Error);
      }
    };
    payload.on('data', take).on('end', end).on('error', end).on('close', end).resume();
  });
}

/**
 * Reads and drops the rest of a refused body, within bounds: a client that is still sending when the connection closes
 * sees a broken connection instead of the answer. Compressed data is not decompressed, so a decompression bomb expands
 * no further.
 */
export async function discardRest(raw: IncomingMessage, payload: Readable): Promise<void> {
  if (payload !== raw) raw.unpipe();
  if (!raw.readableEnded && !raw.destroyed) await untilEnded(raw);
  if (payload !== raw) payload.destroy();
}

function untilEnded(raw: IncomingMessage): Promise<void> {
  let left = limits.discardedBytesMax;
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limits.discardMs);
    raw
      .on('data', (chunk: Buffer) => {
        left -= chunk.length;
        if (left < 0) resolve();
      })
      .once('end', resolve)
      .once('error', () => resolve())
      .once('close', () => {
        clearTimeout(timer);
        resolve();
      })
      .resume();
  });
}

function roomFor(bytes: number, holding: Holding): Buffer {
  holding.grow(bytes);
  return Buffer.allocUnsafe(bytes);
}

/** A body that cannot be read is the client's fault, whether it does not decompress or the connection broke. */
function asClientFault(error: Error): Error {
  return error instanceof RequestError || 'statusCode' in error
    ? error
    : new RequestError('malformed_request', { cause: error });
}
