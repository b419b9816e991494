import { limits } from '../../limits.ts';
import { issueConsoleLink } from '../../operator/audited-actions.ts';
import { bodySchema, readFields } from '../operation/body.ts';
import { described, whileDeleted } from '../operation/described-answers.ts';
import type { Operation } from '../operation/operation.ts';
import { bodyText, expiryField, operatorOf, organisationNamed, slugField, toggle } from './fields.ts';
import type { AdminParts } from './parts.ts';

const fields = {
  organisation: { ...bodyText(slugField), required: true as const },
  read_only: toggle('whether the link gives read-only access'),
  expires_at: expiryField('when the link and its session end; default in an hour'),
};

const issueLink: Operation<AdminParts> = {
  id: 'issue-console-link',
  method: 'POST',
  path: '/admin/v1/console-links',
  tag: 'Console',
  summary: 'Create a link to the console',
  description:
    'The link works once. Append `path` to the address of the service and redirect the user there. Access ends when the key with ' +
    'this `key_id` expires or is revoked.',
  permission: null,
  requestBody: { schema: bodySchema(fields), example: { organisation: 'acme', read_only: true } },
  answers: { 201: described('The link.', 'ConsoleLink'), 409: whileDeleted },
  async handle(call, { pool }) {
    const wanted = readFields(fields, call.body);
    const { organisation_id: organisationId } = await organisationNamed(pool, wanted.organisation);
    const link = await issueConsoleLink(pool, operatorOf(call), {
      organisationId,
      isReadOnly: wanted.read_only ?? false,
      expiresAt: wanted.expires_at ?? new Date(Date.now() + limits.consoleLinkMs),
    });
    return { status: 201, body: link };
  },
};

export const consoleOperations: readonly Operation<AdminParts>[] = [issueLink];
