import { version } from '../../src/config.ts';
import type { ApiName } from '../../src/errors.ts';
import { jsonLines } from '../../src/http/operation/accept.ts';
import type { JsonSchema, Operation } from '../../src/http/operation/operation.ts';
import {
  changesSchemaName,
  pageSchemaName,
  schemaName,
  storedExample,
  storedSchemaName,
} from '../../src/http/operation/stored-records.ts';
import type { Field } from '../../src/registry/fields.ts';
import { interaction } from '../../src/registry/interaction.ts';
import { idFieldOf, type ResourceType, resources, resourceTypes } from '../../src/registry/resources.ts';
import { answerSchemas, pageSchema } from './answers.ts';
import { codeSamplesOf } from './code-samples.ts';
import { errorSchemas, errorSection } from './errors.ts';
import { type Examples, publicExamples } from './examples.ts';
import { lakeAnswerSchemas } from './lake-answers.ts';
import { Parameters } from './parameters.ts';
import { needsNoSecret, responsesOf, sharedResponses } from './responses.ts';

/** The parts of an API description that do not depend on the operations. */
export interface AboutApi {
  readonly api: ApiName;
  readonly title: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** The only authentication scheme. */
  readonly security: Readonly<Record<string, JsonSchema>>;
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly examples: Examples;
}

/** Describes operations in OpenAPI 3.1. */
export function describeOperations(operations: readonly Operation<never>[], about: AboutApi): JsonSchema {
  const { api, title, summary, description, tags, security, schemas, examples } = about;
  refuseUnused(examples, operations);
  const parameters = new Parameters(operations);
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: describe(operation, parameters, examples),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title,
      version: version(),
      summary,
      description: `${description}\n\n${errorSection(api)}`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: Object.keys(security).map((name) => ({ [name]: [] })),
    tags,
    paths,
    components: {
      securitySchemes: security,
      schemas: { ...schemas, ...errorSchemas(api) },
      parameters: parameters.components,
      ...sharedResponses(api, operations, examples),
    },
  };
}

/** Throws if an example matches no answer. Either its name is a typo, or its operation has been removed. */
function refuseUnused(examples: Examples, operations: readonly Operation<never>[]): void {
  const used = new Set(
    operations.flatMap(({ id, answers }) =>
      Object.entries(answers).map(([status, { sharedAs }]) => sharedAs ?? `${id} ${status}`),
    ),
  );
  const unused = Object.keys(examples).filter((name) => !used.has(name));
  if (unused.length > 0) throw new Error(`no answer has the example ${unused.join(', ')}`);
}

/** Describes the whole public API, which consists of its operations and the records in the registry. */
export function describeApi(operations: readonly Operation[]): JsonSchema {
  return describeOperations(operations, {
    api: 'public',
    title: 'Intake',
    summary: 'Checked, referenced, durable: records in batches, interactions one by one or in batches.',
    description: introduction,
    tags: [
      { name: 'Upload', description: 'Records in batches, one address per type.' },
      { name: 'Records', description: aboutRecords },
      {
        name: 'Changes',
        description: 'What was created or changed, in order, for clients that keep a copy.',
      },
      { name: 'Receipts', description: 'The answers to uploads, kept.' },
      {
        name: 'Runs',
        description: 'Uploads of one or several files, which the requests of a client can name.',
      },
      { name: 'Rejections', description: 'Failed records, which can be corrected or replayed.' },
      { name: 'Interactions', description: 'What users do: one interaction per request, or many.' },
      {
        name: 'Reports',
        description: 'Results that are computed in the background and read in milliseconds.',
      },
      { name: 'Lake', description: 'The data as Delta Lake tables, for copying and analysis.' },
      { name: 'Privacy', description: 'Erasing people, and what is stored about them.' },
      { name: 'Health', description: 'For load balancers and monitoring.' },
    ],
    security: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key, `intake_…`.' } },
    schemas: { ...recordSchemas(), ...interactionSchemas(), ...answerSchemas, ...lakeAnswerSchemas },
    examples: publicExamples,
  });
}

const aboutRecords = `Read stored records back one by one, in pages, or all at once.

- **Pages**: send \`next_cursor\` as \`cursor\` until it is null. A page can have fewer records than \`limit\`, even none,
  and still not be the last: a request reads a limited number of records.
- **All at once**: with \`Accept: ${jsonLines}\` every matching record is in one answer, one per line; \`limit\`
  gets 400. If an answer is cut off, continue with the id of its last complete line as \`cursor\`.`;

const introduction = `Upload records, up to 5,000 per request, and interactions, one by one or in batches.

- **Referenced data first**: a record fails while a record it refers to is missing.
- **Retries are safe**: a record replaces the stored record with the same id, and sending the same record again changes nothing.
- **Every record is accounted for**: \`counts\` add up, and \`errors\` lists each failed record, field and reason.
- **Unknown fields** are ignored and listed in \`warnings\`; an unknown query parameter gets 400.
- **Bodies** are JSON in UTF-8, up to 32 MiB, and may be compressed with gzip, br, zstd or deflate.
- **Date-times** without an offset are UTC.
- **The client** \`intake-client\` is a command for files, \`intake upload my-export\`, and a library for JavaScript and
  TypeScript, \`intake.upload('shops', shops)\`. Both split uploads, retry them and report failed records. The examples show both.
  The operator of the service can give you the package, which \`npm install ./intake-client-*.tgz\` installs.
- **Request ids**: every answer has \`X-Request-Id\`; quote it when you ask for help.`;

function recordSchemas(): Record<string, JsonSchema> {
  return Object.fromEntries(
    resourceTypes.flatMap((type) => [
      [schemaName(type), objectSchema(resources[type].fields)],
      [changesSchemaName(type), { ...objectSchema(resources[type].fields), required: [idFieldOf(type)] }],
      [storedSchemaName(type), storedSchema(type)],
      [pageSchemaName(type), pageSchema('records', storedSchemaName(type))],
    ]),
  );
}

/**
 * Returns the schema of stored records. They have every field, and a field with a fallback is never null. Length and range
 * limits apply only to uploaded records.
 */
function storedSchema(resource: ResourceType): JsonSchema {
  const fields: Readonly<Record<string, Field>> = resources[resource].fields;
  const properties = Object.entries(fields).map(([name, { schema, fallback }]) => {
    const { type, format, description } = schema as JsonSchema;
    return [name, { type: fallback === undefined ? type : typeof fallback, format, description }];
  });
  return {
    type: 'object',
    required: Object.keys(fields),
    properties: Object.fromEntries(properties),
    examples: [storedExample(resource)],
  };
}

function interactionSchemas(): Record<string, JsonSchema> {
  const sent = objectSchema(interaction);
  const properties = {
    interaction_id: { type: 'string', format: 'uuid', description: 'a UUIDv7' },
    ...(sent.properties as object),
    event_time: {
      type: 'string',
      format: 'date-time',
      description: 'the instant that `event_timestamp` names: RFC 3339, UTC, microseconds',
    },
    created: { type: 'string', format: 'date-time', description: 'when it was received' },
  };
  const warnings = {
    type: 'array',
    description: 'only in the answer to a recording, and only if there are any',
    items: { $ref: '#/components/schemas/Warning' },
  };
  const stored = {
    type: 'object',
    required: Object.keys(properties),
    properties: { ...properties, warnings },
  };
  return {
    NewInteraction: sent,
    Interaction: stored,
    InteractionPage: pageSchema('interactions', 'Interaction'),
  };
}

function objectSchema(fields: Readonly<Record<string, Field>>): JsonSchema {
  const entries = Object.entries(fields);
  return {
    type: 'object',
    required: entries.filter(([, field]) => field.required).map(([name]) => name),
    properties: Object.fromEntries(entries.map(([name, field]) => [name, { ...field.schema }])),
  };
}

function describe(operation: Operation<never>, parameters: Parameters, examples: Examples): JsonSchema {
  const { permission, requestBody } = operation;
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: permission
      ? `${operation.description}\n\nNeeds the permission \`${permission}\`.`
      : operation.description,
    ...(needsNoSecret(operation) && { security: [] }),
    ...parameters.of(operation),
    ...(requestBody && {
      requestBody: {
        required: requestBody.required ?? true,
        content: {
          'application/json': {
            schema: requestBody.schema,
            examples: { example: { value: requestBody.example } },
          },
        },
      },
    }),
    responses: responsesOf(operation, examples),
    ...(permission !== null && codeSamplesOf(operation)),
  };
}
