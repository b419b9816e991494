import { parseArgs } from 'node:util';
import { readSetting } from '../config.ts';
import { limits } from '../limits.ts';
import {
  changeOrganisation,
  createOrganisation,
  deleteOrganisation,
  type OrganisationChange,
  restoreOrganisation,
} from '../operator/audited-actions.ts';
import { listOrganisations, type Organisation } from '../operator/organisations.ts';
import {
  keptDaysProblem,
  type OrganisationLimit,
  organisationLimits,
  organisationName,
  slugProblem,
} from '../operator/rules.ts';
import { resourceTypes } from '../registry/resources.ts';
import { type KeptType, keptTypes } from '../retention/kept-days.ts';
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
  if (action === 'set-lake') return setLake(args);
  if (action === 'set-retention') return setRetention(args);
  if (action === 'delete') return deleteOne(args);
  if (action === 'restore') return restore(args);
  // Loaded on demand, because this module needs most of the service.
  if (action === 'export') return (await import('./move-organisation.ts')).runExport(args);
  if (action === 'import') return (await import('./move-organisation.ts')).runImport(args);
  throw commandError(
    'organisations expects create, list, suspend, resume, limit, set-report, set-lake, set-retention, delete, restore, export or import; ' +
      'run intake-server organisations --help for examples',
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
      'specify one slug of lower-case letters, digits and hyphens, at most 63 long: organisations create acme',
    );
  }
  const name = values.name ?? slug;
  const problem = name === '' ? { message: 'must not be empty' } : organisationName.read(name);
  if (typeof problem === 'object') throw commandError(`--name ${problem.message}`);
  const created = await withPool((pool) => createOrganisation(pool, operator(), slug, name));
  if (!created) throw commandError(`the organisation "${slug}" already exists`);
  console.log(`Created the organisation ${created.slug} (${created.organisation_id}).`);
  console.log(`Next: intake-server keys issue --organisation ${created.slug}`);
}

async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean', default: false } } });
  await withPool((pool) =>
    printAll((after) => listOrganisations(pool, after, limits.listedPerPageMax), {
      json: values.json,
      columns: ['slug', 'name', 'created', 'state', 'retention'],
      nameOf: ({ slug }) => slug,
      lineOf: (one) => [one.slug, one.name, one.created_at, stateOf(one), shortRetention(one)].join('\t'),
    }),
  );
}

function stateOf({ suspended_at, deleted_at, removal }: Organisation): string {
  if (removal)
    return `being removed, ${removal.rows} rows so far, now at ${removal.table ?? 'the first table'}`;
  if (deleted_at !== null) return `deleted ${deleted_at}`;
  return suspended_at === null ? 'active' : `suspended ${suspended_at}`;
}

async function suspend(args: string[], action: 'suspend' | 'resume'): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const slug = oneSlug(positionals, action);
  await changeNamed(slug, { suspended: action === 'suspend' });
  console.log(
    action === 'suspend'
      ? `Suspended ${slug}: within 5 seconds every process refuses its keys. Undo it with organisations resume ${slug}`
      : `Resumed ${slug}: within 5 seconds its keys work again.`,
  );
}

export const flagOf = (name: OrganisationLimit) => name.replace(/_max$/, '').replaceAll('_', '-');
const limitNames = Object.keys(organisationLimits) as OrganisationLimit[];

async function limit(args: string[]): Promise<void> {
  const { slug, values } = readValues(args, 'limit', limitNames.map(flagOf));
  const wanted = limitNames.flatMap((name) => {
    const value = values[flagOf(name)];
    return value === undefined ? [] : [[name, readLimit(name, value)]];
  });
  const organisation = await changeOrFind(slug, Object.fromEntries(wanted));
  if (values.json !== undefined) console.log(JSON.stringify(organisation));
  else showLimits(organisation);
}

/** There is no default quota. */
const defaultOf = {
  records_stored_max: null,
  bytes_stored_max: null,
  requests_per_second_max: settings.requestsPerSecondMax,
  interactions_per_second_max: settings.interactionsPerSecondMax,
  records_per_second_max: settings.recordsPerSecondMax,
  bytes_in_flight_max: settings.bytesInFlightPerOrganisationMax,
} as const satisfies Record<OrganisationLimit, Setting<WholeNumber> | null>;

/** The value of a default is not shown, because this command cannot know the settings of `serve`. */
function showLimits(organisation: Organisation): void {
  console.log(headerOf(['limit', 'value', 'from']));
  for (const name of limitNames) {
    const own = organisation[name];
    const setting = defaultOf[name];
    const byDefault = setting ? ofService(setting) : 'default';
    const from = own === null ? byDefault : `set for this organisation${usageOf(organisation, name)}`;
    console.log([flagOf(name), own ?? (setting ? 'default' : 'none'), from].join('\t'));
  }
}

const ofService = ([variable]: Setting) => `${variable} of the service`;

function usageOf(organisation: Organisation, name: OrganisationLimit): string {
  if (name !== 'records_stored_max' && name !== 'bytes_stored_max') return '';
  const used = organisation[name === 'records_stored_max' ? 'records_stored' : 'bytes_stored'];
  return used === null ? ', not measured yet' : `, ${used} stored`;
}

function readLimit(name: OrganisationLimit, value: string): number | null {
  if (value === 'default') return null;
  const { minimum, maximum } = organisationLimits[name];
  const read = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (read >= minimum && read <= maximum) return read;
  throw commandError(
    `--${flagOf(name)} must be a whole number from ${minimum} to ${maximum}, or default; not "${value}"`,
  );
}

function readSwitch(args: string[], action: 'set-report' | 'set-lake'): { slug: string; isOn: boolean } {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const [slug, state, ...rest] = positionals;
  if (slug === undefined || (state !== 'on' && state !== 'off') || rest.length > 0)
    throw commandError(`specify a slug, and on or off: organisations ${action} acme on`);
  return { slug, isOn: state === 'on' };
}

async function setReport(args: string[]): Promise<void> {
  const { slug, isOn } = readSwitch(args, 'set-report');
  await changeNamed(slug, { recommendations_report: isOn });
  console.log(
    isOn
      ? `Switched the report of ${slug} on: counting begins now, with everything stored so far, and as_of in the report shows the progress.`
      : `Switched the report of ${slug} off: nothing more is counted, and the report answers 409. Undo it with organisations set-report ${slug} on`,
  );
}

async function setLake(args: string[]): Promise<void> {
  const { slug, isOn } = readSwitch(args, 'set-lake');
  await changeNamed(slug, { lake: isOn });
  console.log(
    isOn
      ? `Switched the lake of ${slug} on: intake-server lake copies the stored data and then adds new data.`
      : `Switched the lake of ${slug} off: intake-server lake deletes its files. After organisations set-lake ${slug} on it copies everything again.`,
  );
}

async function deleteOne(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { confirm: { type: 'string' } },
  });
  const slug = oneSlug(positionals, 'delete');
  if (values.confirm !== slug)
    throw commandError(
      `this deletes the organisation "${slug}" with all its data; to confirm, repeat its slug: organisations delete ${slug} --confirm ${slug}`,
    );
  const deleted = await withPool((pool) => deleteOrganisation(pool, operator(), slug));
  if (!deleted) throw noOrganisation(slug);
  console.log(
    `Deleted ${slug}: within 5 seconds every process refuses its keys. After ${ofService(settings.deletedOrganisationsKeptDays)}, ` +
      `30 days by default, its data is permanently removed; until then, undo it with organisations restore ${slug}`,
  );
}

async function restore(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const slug = oneSlug(positionals, 'restore');
  const restored = await withPool((pool) => restoreOrganisation(pool, operator(), slug));
  if (!restored) throw noOrganisation(slug);
  console.log(
    restored.suspended_at === null
      ? `Restored ${slug}: within 5 seconds its keys work again.`
      : `Restored ${slug}, which is suspended as before.`,
  );
}

async function setRetention(args: string[]): Promise<void> {
  const { slug, values } = readValues(args, 'set-retention', [...keptTypes, ...resourceTypes]);
  const refused = resourceTypes.find((type) => values[type] !== undefined);
  if (refused !== undefined)
    throw commandError(
      `--${refused} is a type of records, which are kept until their person is erased: other records may refer to them. ` +
        `Retention is for ${keptTypes.join(', ')}`,
    );
  const wanted = keptTypes.flatMap((type) => {
    const value = values[type];
    return value === undefined ? [] : [[`${type}_kept_days`, readKeptDays(type, value)]];
  });
  const organisation = await changeOrFind(slug, Object.fromEntries(wanted));
  if (values.json !== undefined) console.log(JSON.stringify(organisation));
  else showRetention(organisation);
}

function readKeptDays(type: KeptType, value: string): number | null {
  if (value === 'off') return null;
  const days = /^\d{1,4}d$/.test(value) ? Number.parseInt(value, 10) : Number.NaN;
  const problem = keptDaysProblem(type, days, readSetting(settings.receiptsKeptDays));
  if (problem === undefined) return days;
  throw commandError(`--${type} ${problem}, such as 7d, or off; not "${value}"`);
}

function showRetention(organisation: Organisation): void {
  console.log(headerOf(['type', 'kept', 'from']));
  for (const type of keptTypes) {
    const own = organisation[`${type}_kept_days`];
    const byDefault =
      type === 'interactions'
        ? ['indefinitely', 'default']
        : ['default', ofService(settings.receiptsKeptDays)];
    const shown = own === null ? byDefault : [keptText(own), 'set for this organisation'];
    console.log([type, ...shown].join('\t'));
  }
}

/** Formats a retention period as `set-retention` accepts it. */
export const keptText = (days: number | null) => (days === null ? 'off' : `${days}d`);

function shortRetention(organisation: Organisation): string {
  const own = keptTypes.filter((type) => organisation[`${type}_kept_days`] !== null);
  return own.map((type) => `${type} ${keptText(organisation[`${type}_kept_days`])}`).join(', ') || 'off';
}

/** Reads a slug and an option with a value for each of the names. */
function readValues(args: string[], action: string, names: readonly string[]) {
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]));
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { ...options, json: { type: 'boolean' } },
  });
  return { slug: oneSlug(positionals, action), values: values as Record<string, string | undefined> };
}

async function changeOrFind(slug: string, wanted: OrganisationChange): Promise<Organisation> {
  if (Object.keys(wanted).length > 0) return changeNamed(slug, wanted);
  return withPool((pool) => organisationNamed(pool, slug));
}

async function changeNamed(slug: string, wanted: OrganisationChange): Promise<Organisation> {
  const changed = await withPool((pool) => changeOrganisation(pool, operator(), slug, wanted));
  if (!changed) throw noOrganisation(slug);
  return changed;
}

function oneSlug(positionals: readonly string[], action: string): string {
  const [slug, ...rest] = positionals;
  if (slug === undefined || rest.length > 0)
    throw commandError(`specify one organisation by its slug: organisations ${action} acme`);
  return slug;
}
