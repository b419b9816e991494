import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { RequestError } from '../errors.ts';
import type { Holding } from '../keys/bytes-in-flight.ts';

/** A body as it arrives, decompressed by then; the plugin that does so counts what came before. */
export type Payload = Readable & { readonly receivedEncodedLength?: number };

/** Reads a body whole, within its bound, and holds room for what was announced before the first byte is read. */
export function readBody(
  headers: IncomingHttpHeaders,
  payload: Payload,
  bytesMax: number,
  holding: Holding,
): Promise<Buffer> {
  const announced = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  return new Promise((resolve, reject) => {
    if ((announced ?? 0) > bytesMax) throw new RequestError('body_too_large');
    holding.grow(announced ?? 0);
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (error?: Error) => {
      payload.off('data', take).off('end', end).off('error', end).off('close', end);
      if (error) return reject(asClientFault(error));
      // Also where the connection was closed before the end.
      const sent = payload.receivedEncodedLength || length;
      if (!payload.readableEnded || (announced !== undefined && sent !== announced))
        return reject(new RequestError('malformed_request'));
      resolve(Buffer.concat(chunks, length));
    };
    const take = (chunk: Buffer) => {
      length += chunk.length;
      try {
        if (length > bytesMax) throw new RequestError('body_too_large');
        holding.grow(length);
        chunks.push(chunk);
      } catch (error) {
        end(error as Error);
      }
    };
    payload.on('data', take).on('end', end).on('error', end).on('close', end).resume();
  });
}

/** What cannot be read is the client's, whether it does not decompress or the connection broke off. */
function asClientFault(error: Error): Error {
  return error instanceof RequestError || 'statusCode' in error
    ? error
    : new RequestError('malformed_request', { cause: error });
}
