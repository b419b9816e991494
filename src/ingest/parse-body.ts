import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { nestedTooDeeply } from '../registry/validate.ts';
import { isDeeperThan } from './json-bytes.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a JSON body. A byte that is not UTF-8 is refused: replaced in silence, it would be data lost. */
export function parseBody(bytes: Buffer | undefined): unknown {
  if (bytes === undefined) return undefined;
  if (isDeeperThan(bytes, limits.bodyDepthMax)) throw new RequestError('nested_too_deeply');
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new RequestError('malformed_utf8');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // Of what the parser says only the place is repeated: the rest quotes the body.
    const [place] = / at position \d+/.exec((error as Error).message) ?? [' at its end'];
    throw new RequestError('malformed_json', {
      message: `The body is not valid JSON${place}; send one JSON object.`,
    });
  }
}

/** Around a record there are the brackets of the body and of its records. */
const recordDepthMax = limits.bodyDepthMax - 2;

/** Parses one record of sound JSON. One that is nested deeply is none, and not worth parsing; its neighbours are. */
export function parseRecord(bytes: Buffer): unknown {
  return isDeeperThan(bytes, recordDepthMax) ? nestedTooDeeply : JSON.parse(bytes.toString('utf8'));
}
