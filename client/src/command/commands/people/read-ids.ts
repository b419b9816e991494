import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { isCustomerId, isUserId } from '../../../erasure-requests.ts';
import { FileError, withPath } from '../../../parsing/file-error.ts';
import { UsageError } from '../../options/command.ts';

const problemsShownMax = 20;

interface Given {
  readonly id: string;
  /** The number of the argument or line, counting from 1. */
  readonly place: string;
}

/**
 * Returns the distinct ids from the arguments and from the file, which is standard input if its path is `-`. Error messages
 * show the line number of an invalid id but not the id itself, because standard error often ends up in a log.
 */
export async function readIds(
  args: readonly string[],
  file: string | undefined,
  isOfUsers: boolean,
): Promise<string[]> {
  const given: Given[] = args.map((id, at) => ({ id, place: `Argument ${at + 1}` }));
  if (file !== undefined) given.push(...(await linesOf(file)));
  const problems = given.flatMap(({ id, place }) => {
    const problem = isOfUsers ? problemOfUser(id) : isCustomerId(id) ? undefined : 'is not a UUID.';
    return problem === undefined ? [] : `${place} ${problem}`;
  });
  if (problems.length > 0) {
    const more = problems.length - problemsShownMax;
    throw new UsageError(
      'Nothing was erased, because some ids are invalid.',
      ...problems.slice(0, problemsShownMax).map((each) => `  ${each}`),
      ...(more > 0 ? [`  and ${more} more`] : []),
    );
  }
  return [...new Set(given.map(({ id }) => id))];
}

/**
 * Returns what is wrong with a user id. An id with a leading or trailing space is probably a mistake and would match nobody.
 */
function problemOfUser(id: string): string | undefined {
  if (id !== id.trim()) return 'begins or ends with a space.';
  return isUserId(id) ? undefined : 'is longer than the id of a user can be.';
}

async function linesOf(file: string): Promise<Given[]> {
  const lines = (await textOf(file)).split(/\r?\n/);
  return lines.flatMap((id, at) => (id.trim() === '' ? [] : { id, place: `Line ${at + 1}` }));
}

async function textOf(file: string): Promise<string> {
  try {
    const bytes = await (file === '-' ? buffer(process.stdin) : readFile(file));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw withPath(file, new FileError('There is no such file.'));
    const isText = code !== 'ERR_ENCODING_INVALID_ENCODED_DATA';
    throw withPath(
      file,
      new FileError(isText ? `${message}.` : 'It is not UTF-8. Save it as UTF-8, one id per line.'),
    );
  }
}
