import { defaultLimits } from '../../admission/request-limits.ts';
import { invalidRequest, RequestError } from '../../errors.ts';
import { authenticate, authenticateSession, type Principal } from '../../keys/authenticate.ts';
import type { ConsoleSession } from '../../keys/console-sessions.ts';
import { limits } from '../../limits.ts';
import { readFields, refuse } from '../operation/body.ts';
import type { Answer, Call, Operation, Parts } from '../operation/operation.ts';
import { consoleCookie } from './session-cookie.ts';

export const textField = {
  schema: { type: 'string' },
  read: (value: unknown) => (typeof value === 'string' ? value : refuse('wrong_type', 'must be a string')),
};

/** Only the console calls these operations, so the API description omits them. */
export const sessionOperation = {
  path: '/console/api/session',
  tag: 'Console',
  description: '',
  permission: null,
  answers: {},
};

export const signInBody = { schema: {}, example: {}, bytesMax: limits.consoleSignInBytesMax };

const signIn: Operation = {
  ...sessionOperation,
  id: 'console-sign-in',
  method: 'POST',
  summary: 'Exchange a key or a link for a session.',
  requestBody: signInBody,
  async handle(call, parts) {
    const { key, link } = readFields({ key: textField, link: textField }, call.body, false);
    if ((key === undefined) === (link === undefined))
      throw invalidRequest({ field: 'key', code: 'required', message: 'send either key or link' });
    const keyId =
      key === undefined ? await keyOfLink(link as string, call, parts) : await keyOf(key, call, parts);
    const token = await parts.sessions.begin(keyId);
    if (token === undefined) throw new RequestError('not_signed_in');
    const signedIn = await authenticateSession(parts, token, call.client().address);
    return {
      ...answerOf(201, signedIn, parts),
      headers: consoleCookie.set(call, token, limits.consoleSessionSeconds),
    };
  },
};

async function keyOf(key: string, { client }: Call, parts: Parts): Promise<string> {
  const { address } = client();
  const authorization = `Bearer ${key}`;
  const principal = await authenticate(parts.keys, parts.failedKeys, { authorization, address });
  await parts.requestLimits.count('requests', principal);
  if (principal.browserOrigins) throw new RequestError('browser_key');
  return principal.keyId;
}

async function keyOfLink(link: string, { client }: Call, { failedKeys, sessions }: Parts): Promise<string> {
  const { address } = client();
  await failedKeys.refuseTooMany(address);
  const keyId = await sessions.useLink(link);
  if (keyId !== undefined) return keyId;
  await failedKeys.count(address);
  throw new RequestError('link_not_usable');
}

const show: Operation = {
  ...sessionOperation,
  id: 'console-session',
  method: 'GET',
  summary: 'Who is signed in?',
  async handle({ headers, client }, parts) {
    const token = consoleCookie.tokenIn(headers.cookie as string);
    const signedIn = await authenticateSession(parts, token, client().address);
    return answerOf(200, signedIn, parts);
  },
};

const signOut: Operation = {
  ...sessionOperation,
  id: 'console-sign-out',
  method: 'DELETE',
  summary: 'End the session.',
  async handle(call, { sessions }) {
    await sessions.end(consoleCookie.tokenIn(call.headers.cookie as string) ?? '');
    return { status: 204, body: '', headers: consoleCookie.set(call, '', 0) };
  },
};

function answerOf(
  status: number,
  { principal, session }: { readonly principal: Principal; readonly session: ConsoleSession },
  { config }: Parts,
): Answer {
  const { keyId, permissions, limits: own, quota } = principal;
  const { organisation, keyLabel, keyExpiresAt, expiresAt } = session;
  const key = { key_id: keyId, label: keyLabel, permissions, expires_at: keyExpiresAt };
  const holding = Object.entries(defaultLimits(config)).map(([name, value]) => {
    const ownValue = own[name as keyof typeof own];
    return [name, { value: ownValue ?? value, is_default: ownValue === null }];
  });
  return {
    status,
    body: {
      organisation,
      key,
      limits: Object.fromEntries(holding),
      quotas: quota?.near ?? [],
      expires_at: expiresAt,
    },
  };
}

export const consoleOperations: readonly Operation[] = [signIn, show, signOut];
