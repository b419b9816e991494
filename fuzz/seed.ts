import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { adminToken, type Target } from './target.ts';

/** Data that Schemathesis cannot generate on its own. */
export interface Seed {
  /** The keys of two organisations, which must not see each other's data. */
  readonly keys: Readonly<Record<string, string>>;
  /** The ids that exist for each id field. */
  readonly ids: Ids;
  /** The field with the record's own id, for each upload operation. */
  readonly ownIds: Readonly<Record<string, string>>;
  /** The organisations on which the admin API acts. One of them is deleted. */
  readonly slugs: readonly string[];
}

type Ids = Record<string, string[]>;
type Body = Record<string, unknown>;

interface Described {
  readonly paths: Record<string, { readonly post?: DescribedPost }>;
}
interface DescribedPost {
  readonly operationId: string;
  readonly requestBody?: {
    readonly content: { readonly 'application/json': { readonly examples: { example: { value: Body } } } };
  };
}

interface Example {
  readonly operationId: string;
  readonly url: string;
  readonly body: Body;
  /** The record in an upload, or undefined for other operations. */
  readonly record: Body | undefined;
}

/** There is a record of every type with this id, so that every reference to it is valid. */
const sharedId = '00000000-0000-4000-8000-000000000000';
const collectingMs = 240_000;

/**
 * Creates two organisations with a key each. The first has records and a rejection of every type, an interaction, and a
 * customer's collected records. Also creates a third organisation and deletes it.
 */
export async function seed(target: Target): Promise<Seed> {
  const keys = { acme: await createKey(target, 'acme'), other: await createKey(target, 'other') };
  const examples = await examplesOf(target.url);
  const ids = await sendExamples(examples, keys.acme);
  const uploads = examples.flatMap(({ record, ...rest }) => (record ? [{ ...rest, record }] : []));
  for (const { url, record } of uploads) {
    const ownId = ownIdOf(record);
    const rejected = { ...record, [ownId]: randomUUID(), created: 'not a date' };
    await send(url, keys.acme, { records: [{ ...record, [ownId]: sharedId }, rejected] });
  }
  for (const field of Object.keys(ids)) ids[field]?.push(sharedId);
  ids.file_id = await filesInLake(target.url, keys.acme);
  ids.access_request_id = [...(ids.access_request_id ?? []), await collect(target.url, keys.acme)];
  await createKey(target, 'deleted');
  await send(`${target.adminUrl}/admin/v1/organisations/deleted`, adminToken, {}, 'DELETE');
  const ownIds = uploads.map(({ operationId, record }) => [operationId, ownIdOf(record)]);
  return { keys, ids, ownIds: Object.fromEntries(ownIds), slugs: [...Object.keys(keys), 'deleted'] };
}

async function createKey({ adminUrl }: Target, organisation: string): Promise<string> {
  const organisations = `${adminUrl}/admin/v1/organisations`;
  await send(organisations, adminToken, { slug: organisation });
  await send(
    `${organisations}/${organisation}`,
    adminToken,
    { recommendations_report: true, lake: true },
    'PATCH',
  );
  const permissions = [
    'data:write',
    'data:read',
    'interactions:write',
    'interactions:read',
    'data:erase',
    'data:access',
  ];
  const { body } = await send(`${adminUrl}/admin/v1/keys`, adminToken, { organisation, permissions });
  return body.key as string;
}

/** Requests a customer's records, and waits until they can be downloaded. */
async function collect(url: string, key: string): Promise<string> {
  const path = `${url}/v1/access-requests`;
  const { body } = await send(path, key, { customer_ids: [sharedId] });
  for (const until = Date.now() + collectingMs; Date.now() < until; await sleep(100)) {
    const answer = await send(`${path}/${body.access_request_id}`, key, undefined, 'GET');
    if (answer.body.state === 'done') return body.access_request_id as string;
  }
  throw new Error('what is stored about a customer was not collected');
}

/** Waits until the lake has files, and returns their ids. */
async function filesInLake(url: string, key: string): Promise<string[]> {
  for (const until = Date.now() + collectingMs; Date.now() < until; await sleep(100)) {
    const { body } = await send(`${url}/v1/lake/interactions/files`, key, undefined, 'GET');
    const files = (body.files ?? []) as { file_id: string }[];
    if (files.length > 0) return files.map(({ file_id }) => file_id);
  }
  throw new Error('nothing was written to the lake');
}

async function examplesOf(url: string): Promise<Example[]> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as Described;
  return Object.entries(paths).flatMap(([path, { post: described }]) => {
    const body = described?.requestBody?.content['application/json'].examples.example.value;
    if (!described || !body) return [];
    const [record] = (body.records ?? []) as Body[];
    return [{ operationId: described.operationId, url: `${url}${path}`, body, record }];
  });
}

function ownIdOf(record: Body): string {
  return Object.keys(record)[0] as string;
}

/** Sends the examples. Referenced records must exist first, so records that fail are sent again after all others. */
async function sendExamples(examples: readonly Example[], key: string): Promise<Ids> {
  const ids: Ids = {};
  let waiting = examples;
  while (waiting.length > 0) {
    const refused: Example[] = [];
    for (const example of waiting) {
      // Some addresses have the id of what another example creates.
      const url = example.url.replace(/\{(\w+)\}/, (all, name) => ids[name]?.[0] ?? all);
      const { status, body } = await send(url, key, example.body);
      if (status >= 300) refused.push(example);
      else collectIds(ids, { ...(example.record ?? example.body), ...body });
    }
    if (refused.length === waiting.length)
      throw new Error(`the examples of ${refused.map(({ operationId }) => operationId)} are refused`);
    waiting = refused;
  }
  return ids;
}

function collectIds(ids: Ids, named: Body): void {
  for (const [field, id] of Object.entries(named)) {
    if (!field.endsWith('_id') || typeof id !== 'string') continue;
    ids[field] = [...new Set([...(ids[field] ?? []), id])];
  }
}

async function send(
  url: string,
  secret: string,
  body: Body | undefined,
  method = 'POST',
): Promise<{ status: number; body: Body }> {
  const headers = { authorization: `Bearer ${secret}`, ...(body && { 'content-type': 'application/json' }) };
  const answer = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: answer.status, body: (await answer.json()) as Body };
}
