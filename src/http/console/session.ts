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

const fields = {
  key: textField,
  link: textField,
  replace: {
    schema: { type: 'boolean' },
    read: (value: unknown) =>
      typeof value === 'boolean' ? value : refuse('wrong_type', 'must be true or false'),
  },
};

const signIn: Operation = {
  ...sessionOperation,
  id: 'console-sign-in',
  method: 'POST',
  summary: 'Exchange a key or a link for a session.',
  requestBody: signInBody,
  async handle(call, parts) {
    const { key, link, replace = false } = readFields(fields, call.body, false);
    if ((key === undefined) === (link === undefined))
      throw invalidRequest({ field: 'key', code: 'required', message: 'send either key or link' });
    const replaced = consoleCookie.tokenOf(call);
    const token =
      key === undefined
        ? await beginByLink(link as string, replace ? undefined : replaced, call, parts)
        : await parts.sessions.begin(await keyOf(key, call, parts));
    if (token === undefined) throw new RequestError('not_signed_in');
    if (replaced !== undefined) await parts.sessions.end(replaced);
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

/**
 * Throws before the link is used up if this would replace another organisation's session, because anybody can send
 * somebody else a link to an organisation of their own.
 */
async function beginByLink(
  link: string,
  kept: string | undefined,
  { client }: Call,
  { failedKeys, sessions }: Parts,
): Promise<string> {
  const { address } = client();
  await failedKeys.refuseTooMany(address);
  const current = kept === undefined ? undefined : await sessions.find(kept);
  const token = await sessions.beginByLink(link, ({ organisation }) => {
    if (current === undefined || current.organisation.slug === organisation.slug) return;
    const [own, other] = [current.organisation.name, organisation.name];
    const problem = `This browser is signed in to ${own}, and the link opens ${other}`;
    throw new RequestError('other_organisation', { problem });
  });
  if (token !== undefined) return token;
  await failedKeys.count(address);
  throw new RequestError('link_not_usable');
}

const show: Operation = {
  ...sessionOperation,
  id: 'console-session',
  method: 'GET',
  summary: 'Who is signed in?',
  async handle(call, parts) {
    const signedIn = await authenticateSession(parts, consoleCookie.tokenOf(call), call.client().address);
    return answerOf(200, signedIn, parts);
  },
};

const signOut: Operation = {
  ...sessionOperation,
  id: 'console-sign-out',
  method: 'DELETE',
  summary: 'End the session.',
  async handle(call, { sessions }) {
    await sessions.end(consoleCookie.tokenOf(call) ?? '');
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
