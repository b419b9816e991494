import createClient from 'openapi-fetch';
import type { paths as AdminPaths, components as adminComponents } from './admin-openapi.d.ts';
import type { components, paths } from './openapi.d.ts';

/** Code that a user of the generated types would write. It must compile in strict mode, and it must work. */

declare const process: { argv: string[] };
const [url = '', adminUrl = '', adminToken = ''] = process.argv.slice(2);

const admin = createClient<AdminPaths>({
  baseUrl: adminUrl,
  headers: { authorization: `Bearer ${adminToken}` },
});
const organisation = await admin.POST('/admin/v1/organisations', { body: { slug: 'typescript' } });
if (!organisation.data) throw new Error(`no organisation: ${organisation.error.message}`);
const issued = await admin.POST('/admin/v1/keys', { body: { organisation: organisation.data.slug } });
if (!issued.data) throw new Error(`no key: ${issued.error.message}`);
const key: adminComponents['schemas']['IssuedKey'] = issued.data;

const api = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${key.key}` } });
const shop: components['schemas']['Shop'] = {
  shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
  name: 'Corner Bakery',
  region: 'GB',
};

const upload = () =>
  api.POST('/v1/data/shops', {
    params: { header: { 'Idempotency-Key': 'first' }, query: { dry_run: false } },
    body: { records: [shop] },
  });
const uploaded = await upload();
if (!uploaded.data) throw new Error('the upload failed');
const [batch] = uploaded.data.batches;
equal(batch?.status, 200);
equal(batch?.data.counts.created, 1);
equal((await upload()).response.headers.get('idempotency-replayed'), 'true');

const read = await api.GET('/v1/data/shops/{shop_id}', { params: { path: { shop_id: shop.shop_id } } });
if (!read.data) throw new Error(`not read back: ${read.error.message}`);
equal(read.data.name, shop.name);
equal(read.data.is_deleted, false);

const page = await api.GET('/v1/data/shops', { params: { query: { limit: 10 } } });
// The same path can also return lines of JSON, which the client gets as a string.
equal(typeof page.data === 'object' && page.data.records.length, 1);

const missing = await api.GET('/v1/data/tags/{tag_id}', { params: { path: { tag_id: shop.shop_id } } });
// An error code that is missing from the description would not compile.
const expected: components['schemas']['Error']['code'] = 'record_not_found';
equal(missing.error?.code, expected);

function equal(actual: unknown, wanted: unknown): void {
  if (actual !== wanted) throw new Error(`${String(actual)} instead of ${String(wanted)}`);
}
