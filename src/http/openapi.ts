import { readFileSync } from 'node:fs';
import type { Field } from '../registry/fields.ts';
import { interaction, interactionExample } from '../registry/interaction.ts';
import { type ResourceType, resources, resourceTypes } from '../registry/resources.ts';
import { answerSchemas, pageSchema } from './openapi-answers.ts';
import type { JsonSchema, Operation } from './operation.ts';
import { pageSchemaName, storedSchemaName } from './routes/records.ts';
import { schemaName } from './routes/upload.ts';

/** What an API says of itself, besides its operations. */
export interface AboutApi {
  readonly title: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** The one way to say who asks. */
  readonly security: Readonly<Record<string, JsonSchema>>;
  readonly schemas: Readonly<Record<string, JsonSchema>>;
}

/** Operations as OpenAPI 3.1. */
export function describeOperations(operations: readonly Operation<never>[], about: AboutApi): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: describe(operation),
    };
  }
  const { title, summary, description, tags, security, schemas } = about;
  return {
    openapi: '3.1.0',
    info: {
      title,
      version: version(),
      summary,
      description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: Object.keys(security).map((name) => ({ [name]: [] })),
    tags,
    paths,
    components: { securitySchemes: security, schemas },
  };
}

/** The whole API: the operations as they are served, the records as the registry has them. */
export function describeApi(operations: readonly Operation[]): JsonSchema {
  return describeOperations(operations, {
    title: 'Intake',
    summary: 'Checked, referenced, durable: records in batches, interactions one by one.',
    description: introduction,
    tags: [
      { name: 'Upload', description: 'Records in batches, one address per type.' },
      { name: 'Records', description: 'What was uploaded, read back one by one, in pages, or all at once.' },
      { name: 'Receipts', description: 'What became of each upload.' },
      { name: 'Rejections', description: 'Records that were refused, to be put right and tried again.' },
      { name: 'Interactions', description: 'What users do, one at a time.' },
      { name: 'Health', description: 'For whoever watches over the service.' },
    ],
    security: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key, `intake_…`.' } },
    schemas: { ...recordSchemas(), ...interactionSchemas(), ...answerSchemas },
  });
}

const introduction = `Upload what you know in batches of up to 5,000 records, stream interactions one by one.

- **Referenced data first**: a record that refers to another is stored once the other is.
- **Retries are safe**: a record with a known id replaces what is stored; sending the same again changes nothing.
- **Every record is answered for**: \`counts\` add up, and \`errors\` names each record, field and reason.
- **Unknown fields** are ignored and named in \`warnings\`; an unknown query parameter is refused.
- **Bodies** are JSON in UTF-8, up to 32 MiB, and may be compressed with gzip, br, zstd or deflate.
- **Date-times** without an offset are taken as UTC.
- **Request ids**: every answer carries \`X-Request-Id\`; name it when you ask for help.`;

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function recordSchemas(): Record<string, JsonSchema> {
  return Object.fromEntries(
    resourceTypes.flatMap((type) => [
      [schemaName(type), { ...objectSchema(resources[type].fields), examples: [resources[type].example] }],
      [storedSchemaName(type), storedSchema(type)],
      [pageSchemaName(type), pageSchema('records', storedSchemaName(type))],
    ]),
  );
}

/** Nothing is left out of what is read, and a field with a fallback is never null. */
function storedSchema(type: ResourceType): JsonSchema {
  const fields: Readonly<Record<string, Field>> = resources[type].fields;
  const filled = Object.entries(fields).filter(([, { fallback }]) => fallback !== undefined);
  return {
    type: 'object',
    required: Object.keys(fields),
    allOf: [{ $ref: `#/components/schemas/${schemaName(type)}` }],
    properties: Object.fromEntries(filled.map(([name]) => [name, { not: { type: 'null' } }])),
  };
}

function interactionSchemas(): Record<string, JsonSchema> {
  const sent = objectSchema(interaction);
  const properties = {
    interaction_id: { type: 'string', format: 'uuid', description: 'a UUIDv7' },
    ...(sent.properties as object),
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
    NewInteraction: { ...sent, examples: [interactionExample] },
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

function describe(operation: Operation<never>): JsonSchema {
  const { permission, requestBody } = operation;
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: permission
      ? `${operation.description}\n\nNeeds the permission \`${permission}\`.`
      : operation.description,
    ...(isPublic(operation) && { security: [] }),
    ...parametersOf(operation),
    ...(requestBody && {
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: requestBody.schema,
            examples: { example: { value: requestBody.example } },
          },
        },
      },
    }),
    responses: {
      ...answersOf(operation),
      ...(permission && keyedAnswers),
      ...(permission === null && !isPublic(operation) && tokenAnswers),
      default: anyError,
    },
  };
}

/** Whoever asks is answered, as far as the operation goes: the others need a permission, or the admin token. */
function isPublic({ permission, path }: Operation<never>): boolean {
  return permission === null && !path.startsWith('/admin/');
}

function parametersOf({
  pathParameters = {},
  query = {},
  requestHeaders = {},
}: Operation<never>): JsonSchema {
  const path = Object.entries(pathParameters).map(([name, { schema }]) => ({
    name,
    in: 'path',
    required: true,
    schema,
  }));
  const asked = Object.entries(query).map(([name, field]) => {
    const {
      description,
      type,
      enum: values,
      ...schema
    } = field.schema as JsonSchema & { type: string[]; enum?: unknown[] };
    const plain = {
      ...schema,
      type: type[0],
      ...(values && { enum: values.filter((value) => value !== null) }),
    };
    return { name, in: 'query', ...(description !== undefined && { description }), schema: plain };
  });
  const headers = Object.entries(requestHeaders).map(([name, { description, ...schema }]) => ({
    name,
    in: 'header',
    description,
    schema,
  }));
  const parameters = [...path, ...asked, ...headers];
  return parameters.length > 0 ? { parameters } : {};
}

const answerHeaders = {
  'X-Request-Id': { description: 'names this request', schema: { type: 'string', format: 'uuid' } },
  'Retry-After': { description: 'seconds to wait, with 429, 500 and 503', schema: { type: 'integer' } },
  RateLimit: { description: 'what is left of the limit, and for how long', schema: { type: 'string' } },
  'RateLimit-Policy': { description: 'the limit: how many in how many seconds', schema: { type: 'string' } },
};

function answersOf({ answers }: Operation<never>): JsonSchema {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description, schema, example, otherContent }]) => [
      status,
      {
        description,
        headers: answerHeaders,
        content: {
          'application/json': { schema, ...(example !== undefined && { example }) },
          ...otherContent,
        },
      },
    ]),
  );
}

const error = {
  headers: answerHeaders,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};
const anyError = {
  description: 'Any other failure: a method, media type, size or time that cannot be served, or one of ours.',
  ...error,
};
const tokenAnswers = {
  401: { description: 'The admin token is missing or wrong.', ...error },
};
const keyedAnswers = {
  401: { description: 'The API key is missing or invalid.', ...error },
  403: { description: 'The API key lacks the permission, or its organisation is suspended.', ...error },
  429: { description: 'More than the organisation may send; come back after `Retry-After`.', ...error },
  503: { description: 'The database cannot be reached; come back after `Retry-After`.', ...error },
};
