import { listAuditEntries } from '../../operator/audit-log.ts';
import { dateTime, optional, text } from '../../registry/fields.ts';
import type { Instant } from '../../registry/times.ts';
import { onePage } from '../operation/described-answers.ts';
import type { Operation } from '../operation/operation.ts';
import { dateOf, organisationNamed, pageQuery, readPage, slugField } from './fields.ts';
import type { AdminParts } from './parts.ts';

const list: Operation<AdminParts> = {
  id: 'list-audit-entries',
  method: 'GET',
  path: '/admin/v1/audit',
  tag: 'Audit',
  summary: 'Read the audit log',
  description:
    'Returns a page of the audit log, the newest entry first, for one organisation or for all. Send `next_cursor` as ' +
    '`cursor` until it is null. Entries that are added in the meantime appear when you read the first page again. An entry ' +
    '`console.links` counts the links that an actor has created on that day.',
  permission: null,
  query: {
    organisation: optional(slugField),
    actor: optional(text({ description: 'such as `token:deploy`', codePointsMax: 200 })),
    action: optional(
      text({ description: 'such as `key.issue`, or `key` for all of them', codePointsMax: 100 }),
    ),
    since: optional(dateTime({ description: 'only entries from then on' })),
    until: optional(dateTime({ description: 'only entries before then' })),
    ...pageQuery,
  },
  answers: { 200: onePage('AuditPage') },
  async handle(call, { pool, cursors }) {
    const { organisation: slug, cursor, actor, action, since, until } = call.query as AuditQuery;
    const organisationId =
      slug === undefined ? undefined : (await organisationNamed(pool, slug)).organisation_id;
    const filter = { organisationId, actor, action, since: dateOf(since), until: dateOf(until) };
    const signer = await cursors.for(organisationId ?? 'all', 'audit');
    const { cursor: _, ...query } = call.query;
    const { rows, next } = await readPage(
      cursor === undefined ? query : { ...query, cursor: signer.read(cursor, notACursor) },
      (before, count) => listAuditEntries(pool, filter, count, before),
      ({ audit_id }) => signer.write(audit_id),
    );
    return { status: 200, body: { entries: rows, next_cursor: next } };
  },
};

interface AuditQuery {
  readonly organisation?: string;
  readonly cursor?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly since?: Instant;
  readonly until?: Instant;
}

const notACursor =
  'must be the `next_cursor` of the previous page, with the same organisation; leave it out for the first page';

export const auditOperations: readonly Operation<AdminParts>[] = [list];
