import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { consoleErrorCodes } from '../../src/errors.ts';

/**
 * Writes the generated files of the client and the operator's console from the API descriptions. With --check, it only
 * reports whether they are up to date.
 */
const root = new URL('../../', import.meta.url);
const readDescription = (name: string) => JSON.parse(readFileSync(new URL(name, root), 'utf8'));
const noticeFor = (name: string) => `// Generated from ${name} by npm run generate. Do not edit.\n\n`;
const description = readDescription('openapi.json');
const notice = noticeFor('openapi.json');

interface Resource {
  readonly schema: string;
  readonly path: string;
  readonly idField: string;
  readonly recordsPerRequestMax: number;
  readonly order: number;
  readonly references: Record<string, string>;
}

/** Returns the fields of a schema that refer to other types. */
function referencesOf(schema: string): Record<string, string> {
  const { properties } = description.components.schemas[schema];
  return Object.fromEntries(
    Object.entries<{ 'x-references'?: string }>(properties).flatMap(([field, { 'x-references': type }]) =>
      type === undefined ? [] : [[field, type]],
    ),
  );
}

function recordsOf(requestBody: unknown) {
  // biome-ignore lint/suspicious/noExplicitAny: the description is checked by its own tests.
  return (requestBody as any).content['application/json'].schema.properties.records;
}

function resourcesOf(): Record<string, Resource> {
  const found = new Map<string, Omit<Resource, 'order'>>();
  for (const [path, { post }] of Object.entries<{ post?: never }>(description.paths)) {
    const type = /^\/v1\/data\/([a-z-]+)$/.exec(path)?.[1];
    if (type === undefined || post === undefined) continue;
    const { requestBody } = post as { requestBody: never };
    const { maxItems, items } = recordsOf(requestBody);
    const schema = items.anyOf[0].$ref.split('/').at(-1);
    const idField = Object.keys(description.components.schemas[schema].properties)[0] ?? '';
    const references = referencesOf(schema);
    found.set(type, { schema, path, idField, recordsPerRequestMax: maxItems, references });
  }
  const orderOf = (type: string): number => {
    const targets = Object.values(found.get(type)?.references ?? {});
    return targets.length === 0 ? 0 : 1 + Math.max(...targets.map(orderOf));
  };
  return Object.fromEntries([...found].map(([type, each]) => [type, { ...each, order: orderOf(type) }]));
}

const resources = resourcesOf();

const interactionsPath = '/user-interactions/batch';
const newInteraction = description.components.schemas.NewInteraction;
/** An item may be of any type, so interactions are uploaded after all other types. */
const interactions: Resource = {
  schema: 'NewInteraction',
  path: interactionsPath,
  idField: 'interaction_id',
  recordsPerRequestMax: recordsOf(description.paths[interactionsPath].post.requestBody).maxItems,
  order: 1 + Math.max(...Object.values(resources).map(({ order }) => order)),
  references: referencesOf('NewInteraction'),
};
const uploads = { ...resources, interactions };

/** The record type of each item type. For example, the record type of `SHOP` is `shops`. */
const itemTypes = newInteraction.properties.item_type.enum.map((item: string) => {
  const type = `${item.toLowerCase()}s`;
  if (!Object.hasOwn(resources, type)) throw new Error(`${item} names no record type`);
  return [item, type];
});

/** Removes the references from a schema. They are part of the resources, and a validator does not know the keyword. */
function withoutReferences(key: string, value: unknown): unknown {
  return key === 'x-references' ? undefined : value;
}

const resourcesText = `${notice}import type { components } from './api.ts';

export type ResourceType =
${Object.keys(resources)
  .map((type) => `  | '${type}'`)
  .join('\n')};

/** The types that can be uploaded. */
export type UploadType = ResourceType | 'interactions';

export interface Resource {
  /** The path to upload to. */
  readonly path: string;
  /** The field with the record's id. The service assigns the id of an interaction, so it cannot be uploaded. */
  readonly idField: string;
  readonly recordsPerRequestMax: number;
  /** Everything of order 0 is uploaded before anything of order 1, as in the dependency table. */
  readonly order: number;
  /** By field: the type it refers to, for references that the service checks. */
  readonly references: Readonly<Record<string, ResourceType>>;
}

export const resources: Readonly<Record<UploadType, Resource>> = {
${Object.entries(uploads)
  .map(
    ([type, { path, idField, recordsPerRequestMax, order, references }]) =>
      `  '${type}': ${JSON.stringify({ path, idField, recordsPerRequestMax, order, references })},`,
  )
  .join('\n')}
};

export const uploadTypes = Object.keys(resources) as UploadType[];

export const resourceTypes = uploadTypes.filter((type) => type !== 'interactions');

/** The record type of an interaction's item, by its item type. */
export const itemTypes: Readonly<Record<string, ResourceType>> = ${JSON.stringify(Object.fromEntries(itemTypes))};

/** The fields of an interaction, with the format of their values. */
export const interactionFields: Readonly<Record<string, 'uuid' | null>> = {
${Object.entries<{ format?: string }>(newInteraction.properties)
  .map(([field, { format }]) => `  ${field}: ${format === 'uuid' ? `'uuid'` : null},`)
  .join('\n')}
};

/** The codes of the service's errors, including those that only the console's pages receive. */
export const errorCodes: readonly string[] = ${JSON.stringify([...description.components.schemas.Error.properties.code.enum, ...consoleErrorCodes])};

/** The fields of an uploaded record, by record type. */
export interface RecordOf {
${Object.entries(resources)
  .map(([type, { schema }]) => `  '${type}': components['schemas']['${schema}'];`)
  .join('\n')}
}

/** The fields of a record that is merged with the stored one, by record type. */
export interface ChangesOf {
${Object.entries(resources)
  .map(([type, { schema }]) => `  '${type}': components['schemas']['${schema}Changes'];`)
  .join('\n')}
}

/** The fields of a stored record, by record type. Fields without a value are null. */
export interface StoredRecordOf {
${Object.entries(resources)
  .map(([type, { schema }]) => `  '${type}': components['schemas']['Stored${schema}'];`)
  .join('\n')}
}
`;

const schemasText = `${notice}import type { UploadType } from './resources.ts';

export interface FieldSchema {
  readonly type: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly pattern?: string;
  readonly enum?: readonly (string | null)[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

export interface RecordSchema {
  readonly type: 'object';
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, FieldSchema>>;
}

/** The JSON schema of a record, per type. Only the command needs it; the library must not import it. */
export const schemas: Readonly<Record<UploadType, RecordSchema>> = {
${Object.entries(uploads)
  .map(
    ([type, { schema }]) =>
      `  '${type}': ${JSON.stringify(description.components.schemas[schema], withoutReferences)},`,
  )
  .join('\n')}
};
`;

const typesOf = async (api: OpenAPI3) => astToString(await openapiTS(api));

const files = {
  'client/src/generated/api.ts': notice + (await typesOf(description)),
  'client/src/generated/resources.ts': resourcesText,
  'client/src/generated/schemas.ts': schemasText,
  'console/src/generated/admin-api.ts':
    noticeFor('admin-openapi.json') + (await typesOf(readDescription('admin-openapi.json'))),
};

for (const [name, text] of Object.entries(files)) {
  const file = new URL(name, root);
  if (!process.argv.includes('--check')) {
    mkdirSync(new URL('.', file), { recursive: true });
    writeFileSync(file, text);
  } else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${name} is not what the API description says; run npm run generate`);
    process.exitCode = 1;
  }
}
