import { parseArgs } from 'node:util';
import { createOrganisation, listOrganisations } from '../store/organisations.ts';
import { commandError } from './help.ts';
import { withPool } from './with-pool.ts';

const slugPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const nameCharactersMax = 200;

export async function run([action, ...args]: string[]): Promise<void> {
  if (action === 'create') return create(args);
  if (action === 'list') return list(args);
  throw commandError('organisations takes create or list; intake-server organisations --help shows how');
}

async function create(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { name: { type: 'string' } },
  });
  const [slug, ...rest] = positionals;
  if (slug === undefined || rest.length > 0 || !slugPattern.test(slug)) {
    throw commandError(
      'give one slug of lower-case letters, digits and hyphens, at most 63 long: organisations create acme',
    );
  }
  const name = values.name ?? slug;
  if (name === '' || name.length > nameCharactersMax) {
    throw commandError(`--name must be 1 to ${nameCharactersMax} characters long`);
  }
  const created = await withPool((pool) => createOrganisation(pool, slug, name));
  if (!created) throw commandError(`the organisation "${slug}" exists already`);
  console.log(`Created the organisation ${created.slug} (${created.organisation_id}).`);
  console.log(`Next: intake-server keys issue --organisation ${created.slug}`);
}

async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean', default: false } } });
  const organisations = await withPool(listOrganisations);
  if (values.json) console.log(JSON.stringify(organisations));
  else for (const { slug, name, created_at } of organisations) console.log(`${slug}\t${name}\t${created_at}`);
}
