import { invalidRequest, RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import {
  changeOrganisation,
  createOrganisation,
  deleteOrganisation,
  type OrganisationChange,
  restoreOrganisation,
} from '../../operator/audited-actions.ts';
import { lakeStateOf } from '../../operator/lake-state.ts';
import {
  findOrganisation,
  listOrganisations,
  type Organisation,
  withStored,
} from '../../operator/organisations.ts';
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
import { described, notFound, onePage, refused, whileDeleted } from '../operation/described-answers.ts';
import type { Call, Operation } from '../operation/operation.ts';
import {
  bodyText,
  operatorOf,
  orNull,
  pageQuery,
  patternField,
  readPage,
  toggle,
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
  description:
    'The slug identifies the organisation from then on. The name is for people; default: the slug.',
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
    'Returns a page of organisations, ordered by slug, and how much each of them has stored. Send `next_cursor` as ' +
    '`cursor` until it is null. With `search`, it returns only organisations whose slug or name contains the text, in upper or lower case.',
  permission: null,
  query: { search: optional(text({ codePointsMax: limits.organisationSearchCodePointsMax })), ...pageQuery },
  answers: { 200: onePage('OrganisationPage') },
  async handle(call, { pool }) {
    const { search } = call.query as { search?: string };
    const read = (after: string | null, count: number) => listOrganisations(pool, after, count, search);
    const { rows, next } = await readPage(call.query, read, (row) => row.slug);
    return { status: 200, body: { organisations: await withStored(pool, rows), next_cursor: next } };
  },
};

export const pathParameters = { slug: patternField(slugSchema.pattern, 'the slug of the organisation') };

/** A malformed slug gets the same response as an unknown organisation. */
function slugOf({ params }: Call): string {
  const { slug: asked = '' } = params;
  if (slugProblem(asked)) throw new RequestError('organisation_not_found');
  return asked;
}

function existing<T>(found: T | undefined): T {
  if (!found) throw new RequestError('organisation_not_found');
  return found;
}

export async function organisationOf(call: Call, { pool }: AdminParts): Promise<Organisation> {
  return existing(await findOrganisation(pool, slugOf(call)));
}

const get: Operation<AdminParts> = {
  id: 'get-organisation',
  method: 'GET',
  path: '/admin/v1/organisations/{slug}',
  tag,
  summary: 'Get an organisation',
  description:
    'Returns its name, whether it is suspended or deleted, the progress of its removal, its own limits, quotas and ' +
    'retention, and whether its report and its lake are on.',
  permission: null,
  pathParameters,
  answers: { 200: { description: 'The organisation.', schema }, 404: notFound },
  async handle(call, parts) {
    return { status: 200, body: await organisationOf(call, parts) };
  },
};

const lake: Operation<AdminParts> = {
  id: 'get-lake-of-organisation',
  method: 'GET',
  path: '/admin/v1/organisations/{slug}/lake',
  tag,
  summary: 'Show the progress of the lake of an organisation',
  description:
    'Returns whether stored data is still being copied, and the age of the oldest change that is not in the lake.',
  permission: null,
  pathParameters,
  answers: { 200: described('The state of the lake.', 'LakeState'), 404: notFound },
  async handle(call, parts) {
    const found = await organisationOf(call, parts);
    return { status: 200, body: await lakeStateOf(parts.shared.for(found.organisation_id), found) };
  },
};

const changeFields = {
  name,
  suspended: toggle('true: requests with its keys get 403'),
  requests_per_second_max: orNull(wholeNumber(organisationLimits.requests_per_second_max)),
  interactions_per_second_max: orNull(wholeNumber(organisationLimits.interactions_per_second_max)),
  records_per_second_max: orNull(wholeNumber(organisationLimits.records_per_second_max)),
  bytes_in_flight_max: orNull(wholeNumber(organisationLimits.bytes_in_flight_max)),
  records_stored_max: orNull(wholeNumber(organisationLimits.records_stored_max)),
  bytes_stored_max: orNull(wholeNumber(organisationLimits.bytes_stored_max)),
  recommendations_report: toggle(
    'true: the report on recommendations is counted and can be read; it is false by default',
  ),
  lake: toggle(
    'true: its data is also written to the lake; false, the default: it is not, and files that were written are deleted',
  ),
  interactions_kept_days: orNull(wholeNumber(keptDaysRange)),
  receipts_kept_days: orNull(wholeNumber(keptDaysRange)),
  rejections_kept_days: orNull(wholeNumber(keptDaysRange)),
};

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
  summary:
    'Rename, suspend, resume or limit an organisation, switch its report or its lake, or set its retention',
  description:
    'Omitted fields do not change. A limit of null is the default of the service, and a quota of null removes the quota. ' +
    'Changes take effect within 5 seconds; a new or lower quota takes effect within a minute. Interactions, receipts and ' +
    'rejections that are older than their retention are permanently deleted within about an hour. A retention of null ' +
    'keeps interactions forever, and receipts and rejections for as long as the service does, which is also the maximum.',
  permission: null,
  pathParameters,
  requestBody: {
    schema: bodySchema(changeFields),
    example: { records_per_second_max: 100_000 },
    required: false,
  },
  answers: {
    200: { description: 'The current organisation.', schema },
    404: notFound,
    409: whileDeleted,
  },
  async handle(call, { pool, config }) {
    const wanted = readFields(changeFields, call.body) as OrganisationChange;
    refuseLonger(wanted, config.receiptsKeptDays);
    const changed = await changeOrganisation(pool, operatorOf(call), slugOf(call), wanted);
    return { status: 200, body: existing(changed) };
  },
};

const deleting: Operation<AdminParts> = {
  id: 'delete-organisation',
  method: 'DELETE',
  path: '/admin/v1/organisations/{slug}',
  tag,
  summary: 'Delete an organisation',
  description:
    'Within 5 seconds, requests with its keys get 410 from every process. It can be restored for ' +
    '`DELETED_ORGANISATIONS_KEPT_DAYS`; then all its data is removed, and `removal` shows the progress. The slug can be ' +
    'used again when that is done. Deleting twice changes nothing.',
  permission: null,
  pathParameters,
  answers: { 200: { description: 'The current organisation.', schema }, 404: notFound },
  async handle(call, { pool }) {
    readFields({}, call.body);
    const deleted = await deleteOrganisation(pool, operatorOf(call), slugOf(call));
    return { status: 200, body: existing(deleted) };
  },
};

const restore: Operation<AdminParts> = {
  id: 'restore-organisation',
  method: 'POST',
  path: '/admin/v1/organisations/{slug}/restore',
  tag,
  summary: 'Restore a deleted organisation',
  description:
    'Restores everything as it was before the deletion, including a suspension. Restoring an organisation that is not ' +
    'deleted changes nothing.',
  permission: null,
  pathParameters,
  answers: {
    200: { description: 'The current organisation.', schema },
    404: notFound,
    409: refused('Its removal has begun. Code: `removal_begun`.'),
  },
  async handle(call, { pool }) {
    readFields({}, call.body);
    const restored = await restoreOrganisation(pool, operatorOf(call), slugOf(call));
    return { status: 200, body: existing(restored) };
  },
};

export const organisationOperations: readonly Operation<AdminParts>[] = [
  create,
  list,
  get,
  lake,
  changing,
  deleting,
  restore,
];
