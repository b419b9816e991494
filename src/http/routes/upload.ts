import { retryAfter } from '../../errors.ts';
import { overallStatus } from '../../ingest/answer.ts';
import { ingestRequest, readRecords } from '../../ingest/ingest-request.ts';
import { limits } from '../../limits.ts';
import { type ResourceType, referencesOf, resources, resourceTypes } from '../../registry/resources.ts';
import { type Operation, principalOf } from '../operation.ts';

/** One upload operation per record type: each has its own shape, permission and example. */
export const uploadOperations: readonly Operation[] = resourceTypes.map(uploadOperation);

function uploadOperation(type: ResourceType): Operation {
  const recordsMax = type === 'courses' ? limits.coursesPerRequestMax : limits.recordsPerRequestMax;
  const answer = { schema: { $ref: '#/components/schemas/UploadAnswer' } };
  return {
    id: `upload-${type}`,
    method: 'POST',
    path: `/v1/data/${type}`,
    tag: 'Upload',
    summary: `Upload ${type.replaceAll('-', ' ')}`,
    description: describe(type, recordsMax),
    permission: `data:write:${type}`,
    requestBody: {
      schema: {
        type: 'object',
        required: ['records'],
        properties: {
          records: {
            type: 'array',
            minItems: 1,
            maxItems: recordsMax,
            items: { $ref: `#/components/schemas/${schemaName(type)}` },
          },
        },
      },
      example: { records: [resources[type].example] },
    },
    answers: {
      200: { description: 'No record failed.', ...answer },
      207: { description: 'Some records failed or some batches did; the others are stored.', ...answer },
      400: {
        description: 'Every record failed, or the request as a whole cannot be taken.',
        schema: { oneOf: [answer.schema, { $ref: '#/components/schemas/Error' }] },
      },
      500: {
        description:
          'No batch is known to be stored, for a reason that is not the data; send the request again.',
        schema: { oneOf: [answer.schema, { $ref: '#/components/schemas/Error' }] },
      },
    },
    async handle(call, { config, pool }) {
      const max = type === 'courses' ? config.coursesPerRequestMax : config.recordsPerRequestMax;
      const records = readRecords(call.body, max);
      const { organisationId } = principalOf(call);
      const body = await ingestRequest(
        pool,
        { organisationId, requestId: call.requestId, type, records },
        (error) => call.log.error({ err: error }, 'a batch was not stored'),
      );
      const unfinished = body.batches.some(({ status }) => status === 500);
      return { status: overallStatus(body.batches), body, ...(unfinished && { headers: retryAfter }) };
    },
  };
}

function describe(type: ResourceType, recordsMax: number): string {
  const references = referencesOf(type).map((reference) => `\`${reference.field}\` (\`${reference.type}\`)`);
  const first =
    references.length > 0 ? ` What they refer to must exist already: ${references.join(', ')}.` : '';
  return (
    `Takes up to ${recordsMax.toLocaleString('en')} records and stores each that is sound, replacing one with the same ` +
    `\`${Object.keys(resources[type].fields)[0]}\` as a whole.${first} Sending the same again changes nothing.`
  );
}

/** `shop-categories` is `ShopCategory` among the schemas. */
export function schemaName(type: ResourceType): string {
  return resources[type].singular
    .split(' ')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}
