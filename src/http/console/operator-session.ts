// http/console/: serves the console's pages and its sign-in.

import { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import {
  authenticateOperator,
  beginOperatorSession,
  endOperatorSession,
  findToken,
} from '../../operator/admin-tokens.ts';
import type { AdminParts } from '../admin/parts.ts';
import { readFields } from '../operation/body.ts';
import type { Operation } from '../operation/operation.ts';
import { sessionOperation, signInBody, textField } from './session.ts';
import { operatorCookie } from './session-cookie.ts';

const fields = { token: { ...textField, required: true as const } };

/** Wrong tokens are not counted, for the reasons given in the comment on `admitOperator`. */
const signIn: Operation<AdminParts> = {
  ...sessionOperation,
  id: 'operator-sign-in',
  method: 'POST',
  summary: 'Exchange an admin token for a session.',
  requestBody: signInBody,
  async handle(call, { pool }) {
    const { token } = readFields(fields, call.body, false);
    const replaced = operatorCookie.tokenOf(call);
    const found = await findToken(pool, token);
    if (!found) throw new RequestError('token_not_usable');
    const session = await beginOperatorSession(pool, found.name);
    const body = await authenticateOperator(pool, session);
    await endOperatorSession(pool, replaced);
    return { status: 201, body, headers: operatorCookie.set(call, session, limits.consoleSessionSeconds) };
  },
};

const show: Operation<AdminParts> = {
  ...sessionOperation,
  id: 'operator-session',
  method: 'GET',
  summary: 'Which admin token is signed in?',
  async handle(call, { pool }) {
    const session = operatorCookie.tokenOf(call);
    return { status: 200, body: await authenticateOperator(pool, session) };
  },
};

const signOut: Operation<AdminParts> = {
  ...sessionOperation,
  id: 'operator-sign-out',
  method: 'DELETE',
  summary: 'End the session.',
  async handle(call, { pool }) {
    await endOperatorSession(pool, operatorCookie.tokenOf(call));
    return { status: 204, body: '', headers: operatorCookie.set(call, '', 0) };
  },
};

export const operatorSessionOperations: readonly Operation<AdminParts>[] = [signIn, show, signOut];
