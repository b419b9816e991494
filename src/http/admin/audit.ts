import { invalidRequest } from '../../errors.ts';
import type { CursorSigner } from '../../keys/signed-cursors.ts';
import { listAuditEntries } from '../../operator/audit-log.ts';
import { optional } from '../../registry/fields.ts';
import { onePage } from '../operation/described-answers.ts';
import type { Operation } from '../operation/operation.ts';
import { organisationNamed, pageOf, pageQuery, slugField } from './fields.ts';
import type { AdminParts } from './parts.ts';

const list: Operation<AdminParts> = {
  id: 'list-audit-entries',
  method: 'GET',
  path: '/admin/v1/audit',
  tag: 'Audit',
  summary: 'Read the audit log',
  description:
    'Returns a page of the audit log, the newest entry first, for one organisation or for all. Send `next_cursor` as ' +
    '`cursor` until it is null. Entries that are added in the meantime appear when you read the first page again.',
  permission: null,
  query: { organisation: optional(slugField), ...pageQuery },
  answers: { 200: onePage('AuditPage') },
  async handle(call, { pool, cursors }) {
    const { organisation: slug, cursor } = call.query as { organisation?: string; cursor?: string };
    const organisationId = slug === undefined ? null : (await organisationNamed(pool, slug)).organisation_id;
    const signer = await cursors.for(organisationId ?? 'all', 'audit');
    const { cursor: _, ...query } = call.query;
    const { rows, next_cursor } = await pageOf(
      cursor === undefined ? query : { ...query, cursor: readCursor(cursor, signer) },
      (before, count) => listAuditEntries(pool, organisationId, count, before),
      ({ audit_id }) => `${audit_id}.${signer.sign(audit_id)}`,
    );
    return { status: 200, body: { entries: rows, next_cursor } };
  },
};

function readCursor(cursor: string, signer: CursorSigner): string {
  const [auditId = '', signature = ''] = cursor.split('.', 2);
  if (cursor === `${auditId}.${signature}` && signer.isSigned(auditId, signature)) return auditId;
  throw invalidRequest({
    field: 'cursor',
    code: 'invalid_format',
    message:
      'must be the `next_cursor` of the previous page, with the same organisation; leave it out for the first page',
  });
}

export const auditOperations: readonly Operation<AdminParts>[] = [list];
