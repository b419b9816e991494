import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { adminToken, type Target } from './target.ts';

/** What Schemathesis cannot make up by itself. */
export interface Seed {
  /** A key of each of two organisations, neither of which may see anything of the other. */
  readonly keys: Readonly<Record<string, string>>;
  /** For each field that names something by its id: ids of what is there. */
  readonly ids: Ids;
  /** For each upload the field with the record's own id. */
  readonly ownIds: Readonly<Record<string, string>>;
  /** Of organisations for the admin API to act on, one of them deleted. */
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
  /** Of an upload, the record in it. */
  readonly record: Body | undefined;
}

/** A record of every type has this id, so that it is found whatever refers to it. */
const sharedId = '00000000-0000-4000-8000-000000000000';
const collectingMs = 60_000;

/**
 * Two organisations with a key each; for the first, records and a rejection of every type, an interaction, and what was collected
 * about a customer. A third organisation is deleted.
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
  ids.access_request_id = [...(ids.access_request_id ?? []), await collect(target.url, keys.acme)];
  await createKey(target, 'deleted');
  await send(`${target.adminUrl}/admin/v1/organisations/deleted`, adminToken, {}, 'DELETE');
  const ownIds = uploads.map(({ operationId, record }) => [operationId, ownIdOf(record)]);
  return { keys, ids, ownIds: Object.fromEntries(ownIds), slugs: [...Object.keys(keys), 'deleted'] };
}

async function createKey({ adminUrl }: Target, organisation: string): Promise<string> {
  const organisations = `${adminUrl}/admin/v1/organisations`;
  await send(organisations, adminToken, { slug: organisation });
  await send(`${organisations}/${organisation}`, adminToken, { recommendations_report: true }, 'PATCH');
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

/** Requests what is stored about a customer, and waits until it can be downloaded. */
async function collect(url: string, key: string): Promise<string> {
  const path = `${url}/v1/access-requests`;
  const { body } = await send(path, key, { customer_ids: [sharedId] });
  for (const until = Date.now() + collectingMs; Date.now() < until; await sleep(100)) {
    const answer = await send(`${path}/${body.access_request_id}`, key, undefined, 'GET');
    if (answer.body.state === 'done') return body.access_request_id as string;
  }
  throw new Error('what is stored about a customer was not collected');
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

/** What others refer to has to be there first: what is refused is sent again once the others are. */
async function sendExamples(examples: readonly Example[], key: string): Promise<Ids> {
  const ids: Ids = {};
  let waiting = examples;
  while (waiting.length > 0) {
    const refused: Example[] = [];
    for (const example of waiting) {
      const { status, body } = await send(example.url, key, example.body);
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
