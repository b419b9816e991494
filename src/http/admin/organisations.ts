import { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import {
  changeOrganisation,
  createOrganisation,
  type OrganisationChange,
} from '../../operator/audited-actions.ts';
import { findOrganisation, listOrganisations } from '../../operator/organisations.ts';
import { organisationLimits, organisationName, slugProblem, slugSchema } from '../../operator/rules.ts';
import { optional, text } from '../../registry/fields.ts';
import { type BodyField, bodySchema, readFields, refuse } from '../operation/body.ts';
import { notFound, onePage, refused } from '../operation/described-answers.ts';
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
  description: 'Its name, whether it is suspended, its own limits, and whether its report is on.',
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
  recommendations_report: boolean(
    'true: the report on recommendations is counted and can be read; it is false by default',
  ),
};

const changing: Operation<AdminParts> = {
  id: 'change-organisation',
  method: 'PATCH',
  path: '/admin/v1/organisations/{slug}',
  tag,
  summary: 'Rename, suspend, resume or limit an organisation, or switch its report',
  description:
    'Fields that are left out do not change. A limit of null is the default of the service. Takes effect within 5 seconds.',
  permission: null,
  pathParameters: { slug: patternField(slugSchema.pattern, 'the slug of the organisation') },
  requestBody: {
    schema: bodySchema(changeFields),
    example: { records_per_second_max: 100_000 },
    required: false,
  },
  answers: { 200: { description: 'The organisation as it is now.', schema }, 404: notFound },
  async handle(call, { pool }) {
    const wanted = readFields(changeFields, call.body) as OrganisationChange;
    const changed = await changeOrganisation(pool, operatorOf(call), slugOf(call), wanted);
    if (!changed) throw new RequestError('organisation_not_found');
    return { status: 200, body: changed };
  },
};

export const organisationOperations: readonly Operation<AdminParts>[] = [create, list, get, changing];
