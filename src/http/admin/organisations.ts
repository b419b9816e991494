import { invalidRequest, RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import {
  changeOrganisation,
  createOrganisation,
  deleteOrganisation,
  type OrganisationChange,
  restoreOrganisation,
} from '../../operator/audited-actions.ts';
import { findOrganisation, listOrganisations } from '../../operator/organisations.ts';
import {
  keptDaysProblem,
  keptDaysRange,
  organisationLimits,
  organisationName,
  slugProblem,
  slugSchema,
} from '../../operator/rules.ts';
import { optional, text } from '../../registry/fields.ts';
import { keptTypes } from '../../retention/kept-days.ts';
import { type BodyField, bodySchema, readFields, refuse } from '../operation/body.ts';
import { notFound, onePage, refused, whileDeleted } from '../operation/described-answers.ts';
import type { Call, Operation } from '../operation/operation.ts';
import {
  bodyText,
  boolean,
  operatorOf,
  orNull,
  pageOf,
  pageQuery,
  patternField,
  wholeNumber,
} from './fields.ts';
import type { AdminParts } from './parts.ts';

const tag = 'Organisations';
const schema = { $ref: '#/components/schemas/Organisation' };
const slug: BodyField<string> = {
  schema: slugSchema,
  read: (value) => {
    if (typeof value !== 'string') return refuse('wrong_type', 'must be a string');
    const problem = slugProblem(value);
    return problem === undefined ? value : refuse('invalid_format', problem);
  },
};
const name = bodyText(organisationName);

const createFields = { slug: { ...slug, required: true as const }, name };

const create: Operation<AdminParts> = {
  id: 'create-organisation',
  method: 'POST',
  path: '/admin/v1/organisations',
  tag,
  summary: 'Create an organisation',
  description: 'The slug identifies it from then on. The name is for people; default: the slug.',
  permission: null,
  requestBody: {
    schema: bodySchema(createFields),
    example: { slug: 'acme', name: 'Acme Student Discounts' },
  },
  answers: {
    201: { description: 'The organisation.', schema },
    409: refused('The slug is taken.'),
  },
  async handle(call, { pool }) {
    const wanted = readFields(createFields, call.body);
    const created = await createOrganisation(pool, operatorOf(call), wanted.slug, wanted.name ?? wanted.slug);
    if (!created) throw new RequestError('slug_taken');
    return { status: 201, body: created };
  },
};

const list: Operation<AdminParts> = {
  id: 'list-organisations',
  method: 'GET',
  path: '/admin/v1/organisations',
  tag,
  summary: 'List organisations',
  description:
    'Returns a page of organisations, by slug: send `next_cursor` as `cursor` until it is null. With `search` only those whose ' +
    'slug or name contains it, in upper or lower case.',
  permission: null,
  query: { search: optional(text({ codePointsMax: limits.organisationSearchCodePointsMax })), ...pageQuery },
  answers: { 200: onePage('OrganisationPage') },
  async handle(call, { pool }) {
    const { search } = call.query as { search?: string };
    const read = (after: string | null, count: number) => listOrganisations(pool, after, count, search);
    const { rows, next_cursor } = await pageOf(call.query, read, (row) => row.slug);
    return { status: 200, body: { organisations: rows, next_cursor } };
  },
};

/** A text that cannot be a slug is answered as an organisation that does not exist. */
export function slugOf({ params }: Call): string {
  const { slug: asked = '' } = params;
  if (slugProblem(asked)) throw new RequestError('organisation_not_found');
  return asked;
}

const get: Operation<AdminParts> = {
  id: 'get-organisation',
  method: 'GET',
  path: '/admin/v1/organisations/{slug}',
  tag,
  summary: 'Get an organisation',
  description:
    'Its name, whether it is suspended or deleted, how far its removal has got, its own limits, quotas and retention, and whether ' +
    'its report is on.',
  permission: null,
  pathParameters: { slug: patternField(slugSchema.pattern, 'the slug of the organisation') },
  answers: { 200: { description: 'The organisation.', schema }, 404: notFound },
  async handle(call, { pool }) {
    const found = await findOrganisation(pool, slugOf(call));
    if (!found) throw new RequestError('organisation_not_found');
    return { status: 200, body: found };
  },
};

const changeFields = {
  name,
  suspended: boolean('true: all its keys are answered with 403'),
  requests_per_second_max: orNull(wholeNumber(organisationLimits.requests_per_second_max)),
  interactions_per_second_max: orNull(wholeNumber(organisationLimits.interactions_per_second_max)),
  records_per_second_max: orNull(wholeNumber(organisationLimits.records_per_second_max)),
  bytes_in_flight_max: orNull(wholeNumber(organisationLimits.bytes_in_flight_max)),
  records_stored_max: orNull(wholeNumber(organisationLimits.records_stored_max)),
  bytes_stored_max: orNull(wholeNumber(organisationLimits.bytes_stored_max)),
  recommendations_report: boolean(
    'true: the report on recommendations is counted and can be read; it is false by default',
  ),
  interactions_kept_days: orNull(wholeNumber(keptDaysRange)),
  receipts_kept_days: orNull(wholeNumber(keptDaysRange)),
  rejections_kept_days: orNull(wholeNumber(keptDaysRange)),
};

/** Receipts and rejections cannot be kept for longer than the service keeps them. */
function refuseLonger(wanted: OrganisationChange, serviceDays: number): void {
  const problems = keptTypes.flatMap((type) => {
    const field = `${type}_kept_days` as const;
    const days = wanted[field] ?? null;
    const message = days === null ? undefined : keptDaysProblem(type, days, serviceDays);
    return message === undefined ? [] : [{ field, code: 'out_of_range', message }];
  });
  if (problems.length > 0) throw invalidRequest(...problems);
}

const changing: Operation<AdminParts> = {
  id: 'change-organisation',
  method: 'PATCH',
  path: '/admin/v1/organisations/{slug}',
  tag,
  summary: 'Rename, suspend, resume or limit an organisation, switch its report, or set its retention',
  description:
    'Omitted fields do not change. For a limit, null restores the default of the service; for a quota, null removes it. Takes ' +
    'effect within 5 seconds; a quota that is new or lower within a minute. ' +
    'Interactions, receipts and rejections that are older than the days they are kept are deleted for good, within an hour or ' +
    'so; null keeps interactions, and the others for as long as the service does, which is also the most.',
  permission: null,
  pathParameters: { slug: patternField(slugSchema.pattern, 'the slug of the organisation') },
  requestBody: {
    schema: bodySchema(changeFields),
    example: { records_per_second_max: 100_000 },
    required: false,
  },
  answers: {
    200: { description: 'The organisation as it is now.', schema },
    404: notFound,
    409: whileDeleted,
  },
  async handle(call, { pool, config }) {
    const wanted = readFields(changeFields, call.body) as OrganisationChange;
    refuseLonger(wanted, config.receiptsKeptDays);
    const changed = await changeOrganisation(pool, operatorOf(call), slugOf(call), wanted);
    if (!changed) throw new RequestError('organisation_not_found');
    return { status: 200, body: changed };
  },
};

const deleting: Operation<AdminParts> = {
  id: 'delete-organisation',
  method: 'DELETE',
  path: '/admin/v1/organisations/{slug}',
  tag,
  summary: 'Delete an organisation',
  description:
    'Within 5 seconds every process answers its keys with 410. It can be restored for `DELETED_ORGANISATIONS_KEPT_DAYS`; then all its ' +
    'data is removed, and `removal` shows how far. The slug can be used again when that is done. Deleting twice changes nothing.',
  permission: null,
  pathParameters: { slug: patternField(slugSchema.pattern, 'the slug of the organisation') },
  answers: { 200: { description: 'The organisation as it is now.', schema }, 404: notFound },
  async handle(call, { pool }) {
    readFields({}, call.body);
    const deleted = await deleteOrganisation(pool, operatorOf(call), slugOf(call));
    if (!deleted) throw new RequestError('organisation_not_found');
    return { status: 200, body: deleted };
  },
};

const restore: Operation<AdminParts> = {
  id: 'restore-organisation',
  method: 'POST',
  path: '/admin/v1/organisations/{slug}/restore',
  tag,
  summary: 'Restore a deleted organisation',
  description:
    'Everything is as before it was deleted, also whether it is suspended. Restoring one that is not deleted changes nothing.',
  permission: null,
  pathParameters: { slug: patternField(slugSchema.pattern, 'the slug of the organisation') },
  answers: {
    200: { description: 'The organisation as it is now.', schema },
    404: notFound,
    409: refused('Its removal has begun. Code: `removal_begun`.'),
  },
  async handle(call, { pool }) {
    readFields({}, call.body);
    const restored = await restoreOrganisation(pool, operatorOf(call), slugOf(call));
    if (!restored) throw new RequestError('organisation_not_found');
    return { status: 200, body: restored };
  },
};

export const organisationOperations: readonly Operation<AdminParts>[] = [
  create,
  list,
  get,
  changing,
  deleting,
  restore,
];
