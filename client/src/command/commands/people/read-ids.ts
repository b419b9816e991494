import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { isCustomerId, isUserId } from '../../../erasure-requests.ts';
import { FileError, withPath } from '../../../parsing/file-error.ts';
import { textOf as optionOf, textsOf, UsageError, type Values } from '../../options/command.ts';
import { idOfKey, keyForm, type Named } from './ids-of-keys.ts';

const problemsShownMax = 20;
const notUuid = 'is not a UUID.';
const keyAdvice =
  'Use --customer-key for a key from an uploaded file, or --keys if the arguments and the file are keys.';

interface Given {
  readonly text: string;
  /** The option, or the number of the argument or line, counting from 1. */
  readonly place: string;
  readonly named: Named;
  readonly isKey: boolean;
}

export interface GivenPeople {
  readonly customerIds: readonly string[];
  readonly userIds: readonly string[];
  /** The keys from which ids were derived, by id. */
  readonly keys: ReadonlyMap<string, string>;
}

/**
 * Returns the distinct ids from the arguments, from the file, which is standard input if its path is `-`, and from the keys in
 * the options. Error messages show the line number of an invalid id but not the id itself, because standard error often ends up
 * in a log.
 */
export async function readPeople(args: readonly string[], values: Values): Promise<GivenPeople> {
  const file = optionOf(values, 'file');
  const listed = args.map((text, at) => ({ text, place: `Argument ${at + 1}` }));
  if (file !== undefined) listed.push(...(await linesOf(file)));
  const named = values.users ? 'users' : 'customers';
  const keysIn = (option: string, of: Named): Given[] =>
    textsOf(values, option).map((text) => ({ text, place: `--${option}`, named: of, isKey: true }));
  const given: Given[] = [
    ...listed.map((one) => ({ ...one, named, isKey: values.keys === true }) as const),
    ...keysIn('customer-key', 'customers'),
    ...keysIn('user-key', 'users'),
  ];
  refuseWrong(given);
  const keys = new Map<string, string>();
  const idsOf = (wanted: Named) =>
    given.flatMap(({ text, named, isKey }) => {
      if (named !== wanted) return [];
      const id = isKey ? (idOfKey(named, text) as string) : text;
      if (isKey) keys.set(id, text.trim());
      return id;
    });
  const [customerIds, userIds] = [new Set(idsOf('customers')), new Set(idsOf('users'))];
  return { customerIds: [...customerIds], userIds: [...userIds], keys };
}

function refuseWrong(given: readonly Given[]): void {
  const problems = given.flatMap((one) => {
    const problem = problemOf(one);
    return problem === undefined ? [] : `${one.place} ${problem}`;
  });
  if (problems.length > 0) {
    const more = problems.length - problemsShownMax;
    throw new UsageError(
      'Nothing was erased, because some ids are invalid.',
      ...problems.slice(0, problemsShownMax).map((each) => `  ${each}`),
      ...(more > 0 ? [`  and ${more} more`] : []),
      ...(problems.some((each) => each.endsWith(notUuid)) ? [keyAdvice] : []),
    );
  }
}

function problemOf({ text, named, isKey }: Given): string | undefined {
  if (isKey) return idOfKey(named, text) === undefined ? `is not a key; ${keyForm(named)}.` : undefined;
  if (named === 'users') return problemOfUser(text);
  return isCustomerId(text) ? undefined : notUuid;
}

/**
 * Returns what is wrong with a user id. An id with a leading or trailing space is probably a mistake and would match nobody.
 */
function problemOfUser(id: string): string | undefined {
  if (id !== id.trim()) return 'begins or ends with a space.';
  return isUserId(id) ? undefined : 'is longer than the id of a user can be.';
}

async function linesOf(file: string) {
  const lines = (await textOf(file)).split(/\r?\n/);
  return lines.flatMap((text, at) => (text.trim() === '' ? [] : { text, place: `Line ${at + 1}` }));
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
