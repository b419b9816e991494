import { parseArgs } from 'node:util';
import { readSetting } from '../config.ts';
import { limits } from '../limits.ts';
import {
  changeOrganisation,
  createOrganisation,
  type OrganisationChange,
} from '../operator/audited-actions.ts';
import { listOrganisations, type Organisation } from '../operator/organisations.ts';
import {
  type OrganisationLimit,
  organisationLimits,
  organisationName,
  slugProblem,
} from '../operator/rules.ts';
import { type Setting, settings, type WholeNumber } from '../settings.ts';
import { commandError } from './arguments/help.ts';
import { headerOf, noOrganisation, operator, organisationNamed, printAll } from './arguments/operator.ts';
import { withPool } from './database/with-pool.ts';

export async function run([action, ...args]: string[]): Promise<void> {
  if (action === 'create') return create(args);
  if (action === 'list') return list(args);
  if (action === 'suspend' || action === 'resume') return suspend(args, action);
  if (action === 'limit') return limit(args);
  if (action === 'set-report') return setReport(args);
  throw commandError(
    'organisations takes create, list, suspend, resume, limit or set-report; intake-server organisations --help shows how',
  );
}

async function create(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { name: { type: 'string' } },
  });
  const [slug, ...rest] = positionals;
  if (slug === undefined || rest.length > 0 || slugProblem(slug)) {
    throw commandError(
      'give one slug of lower-case letters, digits and hyphens, at most 63 long: organisations create acme',
    );
  }
  const name = values.name ?? slug;
  const problem = name === '' ? { message: 'must not be empty' } : organisationName.read(name);
  if (typeof problem === 'object') throw commandError(`--name ${problem.message}`);
  const created = await withPool((pool) => createOrganisation(pool, operator(), slug, name));
  if (!created) throw commandError(`the organisation "${slug}" exists already`);
  console.log(`Created the organisation ${created.slug} (${created.organisation_id}).`);
  console.log(`Next: intake-server keys issue --organisation ${created.slug}`);
}

async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean', default: false } } });
  await withPool((pool) =>
    printAll((after) => listOrganisations(pool, after, limits.listedPerPageMax), {
      json: values.json,
      columns: ['slug', 'name', 'created', 'state'],
      nameOf: ({ slug }) => slug,
      lineOf: ({ slug, name, created_at, suspended_at }) =>
        [slug, name, created_at, suspended_at === null ? 'active' : `suspended ${suspended_at}`].join('\t'),
    }),
  );
}

async function suspend(args: string[], action: 'suspend' | 'resume'): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const slug = oneSlug(positionals, action);
  await changeFound(slug, { suspended: action === 'suspend' });
  console.log(
    action === 'suspend'
      ? `Suspended ${slug}: within 5 seconds every process refuses its keys. Undo it with organisations resume ${slug}`
      : `Resumed ${slug}: within 5 seconds its keys work again.`,
  );
}

/** The flag of a limit: `--requests-per-second` for `requests_per_second_max`. */
export const flagOf = (name: OrganisationLimit) => name.replace(/_max$/, '').replaceAll('_', '-');
const limitNames = Object.keys(organisationLimits) as OrganisationLimit[];

async function limit(args: string[]): Promise<void> {
  const flags = limitNames.map((name) => [flagOf(name), { type: 'string' as const }]);
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { ...Object.fromEntries(flags), json: { type: 'boolean' } },
  }) as { values: Record<string, string | undefined>; positionals: string[] };
  const slug = oneSlug(positionals, 'limit');
  const wanted = limitNames.flatMap((name) => {
    const value = values[flagOf(name)];
    return value === undefined ? [] : [[name, readLimit(name, value)]];
  });
  const organisation =
    wanted.length > 0
      ? await changeFound(slug, Object.fromEntries(wanted) as OrganisationChange)
      : await withPool((pool) => organisationNamed(pool, slug));
  if (values.json !== undefined) console.log(JSON.stringify(organisation));
  else showLimits(organisation);
}

/** The setting with the default of each limit. */
const defaultOf = {
  requests_per_second_max: settings.requestsPerSecondMax,
  interactions_per_second_max: settings.interactionsPerSecondMax,
  records_per_second_max: settings.recordsPerSecondMax,
  bytes_in_flight_max: settings.bytesInFlightPerOrganisationMax,
} as const satisfies Record<OrganisationLimit, Setting<WholeNumber>>;

/** The defaults are settings of the service. This command knows those in its own environment. */
function showLimits(organisation: Organisation): void {
  console.log(headerOf(['limit', 'value', 'from']));
  for (const name of limitNames) {
    const own = organisation[name];
    const setting = defaultOf[name];
    const from = own === null ? `default (${setting[0]})` : 'set for this organisation';
    console.log([flagOf(name), own ?? readSetting(setting), from].join('\t'));
  }
}

function readLimit(name: OrganisationLimit, value: string): number | null {
  if (value === 'default') return null;
  const { minimum, maximum } = organisationLimits[name];
  const read = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (read >= minimum && read <= maximum) return read;
  throw commandError(
    `--${flagOf(name)} must be a whole number from ${minimum} to ${maximum}, or default; not "${value}"`,
  );
}

async function setReport(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const [slug, state, ...rest] = positionals;
  if (slug === undefined || (state !== 'on' && state !== 'off') || rest.length > 0)
    throw commandError('give a slug, and on or off: organisations set-report acme on');
  await changeFound(slug, { recommendations_report: state === 'on' });
  console.log(
    state === 'on'
      ? `Switched the report of ${slug} on: counting begins now, with everything stored so far, and as_of in the report shows how far.`
      : `Switched the report of ${slug} off: nothing more is counted, and the report answers 409. Undo it with organisations set-report ${slug} on`,
  );
}

async function changeFound(slug: string, wanted: OrganisationChange): Promise<Organisation> {
  const changed = await withPool((pool) => changeOrganisation(pool, operator(), slug, wanted));
  if (!changed) throw noOrganisation(slug);
  return changed;
}

function oneSlug(positionals: readonly string[], action: string): string {
  const [slug, ...rest] = positionals;
  if (slug === undefined || rest.length > 0)
    throw commandError(`name one organisation by its slug: organisations ${action} acme`);
  return slug;
}
