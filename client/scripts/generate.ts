import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';

/** Writes what the client takes from the API description; with --check it only says if that is up to date. */
const descriptionFile = new URL('../../openapi.json', import.meta.url);
const description = JSON.parse(readFileSync(descriptionFile, 'utf8'));
const folder = new URL('../src/generated/', import.meta.url);
const notice = '// Generated from openapi.json by npm run generate. Do not edit.\n\n';

interface Resource {
  readonly schema: string;
  readonly idField: string;
  readonly recordsPerRequestMax: number;
  readonly order: number;
  readonly references: Record<string, string>;
}

/** The fields that refer to other types. */
function referencesOf(schema: string): Record<string, string> {
  const { properties } = description.components.schemas[schema];
  return Object.fromEntries(
    Object.entries<{ 'x-references'?: string }>(properties).flatMap(([field, { 'x-references': type }]) =>
      type === undefined ? [] : [[field, type]],
    ),
  );
}

function resourcesOf(): Record<string, Resource> {
  const found = new Map<string, Omit<Resource, 'order'>>();
  for (const [path, { post }] of Object.entries<{ post?: never }>(description.paths)) {
    const type = /^\/v1\/data\/([a-z-]+)$/.exec(path)?.[1];
    if (type === undefined || post === undefined) continue;
    const { requestBody } = post as { requestBody: never };
    // biome-ignore lint/suspicious/noExplicitAny: the description is checked by its own tests.
    const { maxItems, items } = (requestBody as any).content['application/json'].schema.properties.records;
    const schema = items.$ref.split('/').at(-1);
    const idField = Object.keys(description.components.schemas[schema].properties)[0] ?? '';
    found.set(type, { schema, idField, recordsPerRequestMax: maxItems, references: referencesOf(schema) });
  }
  const orderOf = (type: string): number => {
    const targets = Object.values(found.get(type)?.references ?? {});
    return targets.length === 0 ? 0 : 1 + Math.max(...targets.map(orderOf));
  };
  return Object.fromEntries([...found].map(([type, each]) => [type, { ...each, order: orderOf(type) }]));
}

const resources = resourcesOf();

/** They are among the resources; a validator does not know the word. */
function withoutReferences(key: string, value: unknown): unknown {
  return key === 'x-references' ? undefined : value;
}

const resourcesText = `${notice}import type { components } from './api.ts';

export type ResourceType =
${Object.keys(resources)
  .map((type) => `  | '${type}'`)
  .join('\n')};

export interface Resource {
  /** The field with the record's id. */
  readonly idField: string;
  readonly recordsPerRequestMax: number;
  /** Everything of order 0 is uploaded before anything of order 1: the dependency table. */
  readonly order: number;
  /** Field to the type that it refers to, for those that the service checks. */
  readonly references: Readonly<Record<string, ResourceType>>;
}

export const resources: Readonly<Record<ResourceType, Resource>> = {
${Object.entries(resources)
  .map(
    ([type, { idField, recordsPerRequestMax, order, references }]) =>
      `  '${type}': ${JSON.stringify({ idField, recordsPerRequestMax, order, references })},`,
  )
  .join('\n')}
};

/** The fields of an interaction, with the format of their values. */
export const interactionFields: Readonly<Record<string, 'uuid' | null>> = {
${Object.entries<{ format?: string }>(description.components.schemas.NewInteraction.properties)
  .map(([field, { format }]) => `  ${field}: ${format === 'uuid' ? `'uuid'` : null},`)
  .join('\n')}
};

export const interactionsPerRequestMax = ${description.paths['/user-interactions/batch'].post.requestBody.content['application/json'].schema.properties.records.maxItems};

export const resourceTypes = Object.keys(resources) as ResourceType[];

/** What is uploaded, per type. */
export interface RecordOf {
${Object.entries(resources)
  .map(([type, { schema }]) => `  '${type}': components['schemas']['${schema}'];`)
  .join('\n')}
}

/** What is read back, per type: every field, null where there is no value. */
export interface StoredRecordOf {
${Object.entries(resources)
  .map(([type, { schema }]) => `  '${type}': components['schemas']['Stored${schema}'];`)
  .join('\n')}
}
`;

const schemasText = `${notice}import type { ResourceType } from './resources.ts';

export interface FieldSchema {
  readonly type: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
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
export const schemas: Readonly<Record<ResourceType, RecordSchema>> = {
${Object.entries(resources)
  .map(
    ([type, { schema }]) =>
      `  '${type}': ${JSON.stringify(description.components.schemas[schema], withoutReferences)},`,
  )
  .join('\n')}
};
`;

const files = {
  'api.ts': notice + astToString(await openapiTS(description as OpenAPI3)),
  'resources.ts': resourcesText,
  'schemas.ts': schemasText,
};

mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(files)) {
  const file = new URL(name, folder);
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`client/src/generated/${name} is not what openapi.json says; run npm run generate`);
    process.exitCode = 1;
  }
}
