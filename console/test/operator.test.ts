import { expect, it } from 'vitest';
import { keptNames, limitNames } from '../src/operator/api/organisations.ts';
import type { Key, Organisation } from '../src/operator/api/types.ts';
import { changedNumbers, limitOptions, quotaUseOf, valuesOf } from '../src/operator/parts/limits.ts';
import { daysUntil } from '../src/operator/parts/periods.ts';
import { describeDetails } from '../src/operator/screens/audit/describe-details.ts';
import { emptyForm, issueLine, keyRequestOf } from '../src/operator/screens/keys/key-form.ts';
import { keyStateOf, usefulFirst } from '../src/operator/screens/keys/key-state.ts';
import { originOf } from '../src/operator/screens/keys/public-address.ts';
import {
  retentionOptions,
  shortened,
} from '../src/operator/screens/organisation/lifetime/retention-rules.ts';
import {
  choreStateOf,
  isMissing,
  isWithoutLeader,
  problemsIn,
  troubledFirst,
} from '../src/operator/screens/processes/judge-state.ts';

const organisation: Organisation = {
  organisation_id: '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f',
  slug: 'acme',
  name: 'Acme',
  created_at: '2026-03-14T09:26:53.035Z',
  suspended_at: null,
  deleted_at: null,
  removal: null,
  requests_per_second_max: 50,
  interactions_per_second_max: null,
  records_per_second_max: 100_000,
  bytes_in_flight_max: null,
  recommendations_report: false,
  lake: false,
  records_stored_max: null,
  bytes_stored_max: null,
  records_stored: null,
  bytes_stored: null,
  interactions_kept_days: null,
  receipts_kept_days: null,
  rejections_kept_days: null,
};

it('only the limits that differ are sent, and an empty field is the default', () => {
  const before = valuesOf(organisation, limitNames);
  expect(changedNumbers(organisation, before)).toEqual({});
  const change = changedNumbers(organisation, {
    ...before,
    requests_per_second_max: '',
    interactions_per_second_max: ' 20 ',
    records_stored_max: '1000000',
  });
  expect(change).toEqual({
    requests_per_second_max: null,
    interactions_per_second_max: 20,
    records_stored_max: 1_000_000,
  });
  expect(limitOptions(change)).toBe(
    ' --requests-per-second default --interactions-per-second 20 --records-stored 1000000',
  );
});

it('a quota warns from 80 % on, and is an error when it is used up', () => {
  const toneOf = (records_stored: number | null, records_stored_max: number | null = 1_000) =>
    quotaUseOf({ ...organisation, records_stored, records_stored_max }, 'records_stored_max')?.tone;
  expect([0, 799, 800, 999, 1_000, 1_500].map((used) => toneOf(used))).toEqual([
    'plain',
    'plain',
    'warn',
    'warn',
    'bad',
    'bad',
  ]);
  expect([toneOf(null), toneOf(900, null)]).toEqual([undefined, undefined]);
  expect(
    quotaUseOf({ ...organisation, bytes_stored: 90, bytes_stored_max: 100 }, 'bytes_stored_max')?.share,
  ).toBe(0.9);
});

it('a retention is shorter if it has fewer days than before, or than the service', () => {
  const own = { ...organisation, rejections_kept_days: 7 };
  const shorter = (interactions: string, receipts: string, rejections: string) => {
    const change = changedNumbers(own, {
      interactions_kept_days: interactions,
      receipts_kept_days: receipts,
      rejections_kept_days: rejections,
    });
    return shortened(own, change, 30);
  };
  expect(shorter('', '', '7')).toEqual([]);
  expect(shorter('', '30', '')).toEqual([]);
  expect(shorter('', '', '8')).toEqual([]);
  expect(shorter('3650', '29', '6')).toEqual(keptNames);
  // At this point, the service's receipt retention is not known yet.
  expect(shortened(own, { receipts_kept_days: 30 }, undefined)).toEqual(['receipts_kept_days']);
  expect(retentionOptions({ interactions_kept_days: 90, rejections_kept_days: null })).toBe(
    ' --interactions 90d --rejections off',
  );
});

it('a key has either permissions or origins', () => {
  const asChosen = { ...emptyForm, label: ' nightly export ', origins: 'https://shop.example' };
  expect(keyRequestOf('acme', asChosen)).toEqual({
    organisation: 'acme',
    permissions: ['data:write', 'data:read', 'interactions:write', 'interactions:read'],
    label: 'nightly export',
  });
  const origins = 'https://shop.example\nhttps://shop.example, https://other.example\n';
  const forPages = keyRequestOf('acme', { ...emptyForm, browser: true, origins });
  expect(forPages).toEqual({
    organisation: 'acme',
    browser: true,
    origins: ['https://shop.example', 'https://other.example'],
  });
  expect(issueLine(forPages)).toBe(
    'intake-server keys issue --organisation acme --browser --origin https://shop.example --origin https://other.example',
  );
});

it('a permission for one type is not sent next to the one for all types', () => {
  const permissions = new Set(['data:write:shops', 'data:read']);
  expect(keyRequestOf('acme', { ...emptyForm, permissions }).permissions).toEqual([
    'data:write:shops',
    'data:read',
  ]);
  permissions.add('data:write');
  expect(keyRequestOf('acme', { ...emptyForm, permissions }).permissions).toEqual([
    'data:read',
    'data:write',
  ]);
});

it('a label cannot become a command', () => {
  const wanted = keyRequestOf('acme', { ...emptyForm, label: "it's $(rm -rf ~)" });
  expect(issueLine(wanted)).toContain(` --label 'it'\\''s $(rm -rf ~)'`);
});

const nowMs = Date.parse('2026-11-17T12:00:00Z');

it('a key is in use until it is revoked or has expired', () => {
  const key = { revoked_at: null, expires_at: null };
  expect(keyStateOf(key, nowMs)).toMatchObject({ text: 'Active', inUse: true });
  expect(keyStateOf({ ...key, expires_at: '2026-11-17T12:00:01Z' }, nowMs)).toMatchObject({
    text: 'Expires soon',
    inUse: true,
  });
  expect(keyStateOf({ ...key, expires_at: '2026-11-17T12:00:00Z' }, nowMs)).toMatchObject({
    text: 'Expired',
    inUse: false,
  });
  const revoked = { revoked_at: '2026-11-17T11:00:00Z', expires_at: '2027-01-01T00:00:00Z' };
  expect(keyStateOf(revoked, nowMs)).toMatchObject({ text: 'Revoked', inUse: false });
});

it('keys in use come first, then the newest', () => {
  const key = (key_id: string, created_at: string, revoked_at: string | null = null) =>
    ({ key_id, created_at, revoked_at, expires_at: null }) as Key;
  const keys = [
    key('revoked', '2026-11-03', '2026-11-04'),
    key('old', '2026-11-01'),
    key('new', '2026-11-02'),
  ];
  expect(usefulFirst(keys, nowMs).map(({ key_id }) => key_id)).toEqual(['new', 'old', 'revoked']);
});

it('a process is missing after two minutes, and a chore fails until it has run again', () => {
  expect(isMissing({ seen_at: '2026-11-17T11:58:00Z' }, nowMs)).toBe(false);
  expect(isMissing({ seen_at: '2026-11-17T11:57:59Z' }, nowMs)).toBe(true);
  const [early, late] = ['2026-11-17T11:00:00Z', '2026-11-17T11:30:00Z'];
  expect(choreStateOf({ ran_at: early, failed_at: late }).text).toBe('Failing');
  expect(choreStateOf({ ran_at: null, failed_at: late }).text).toBe('Failing');
  expect(choreStateOf({ ran_at: late, failed_at: early }).text).toBe('OK');
  expect(choreStateOf({ ran_at: null, failed_at: null }).text).toBe('Has not run');
});

it('maintenance is missing if no running process leads, except in its first two minutes', () => {
  const process = { started_at: '2026-11-17T09:00:00Z', seen_at: '2026-11-17T11:59:30Z', is_leader: false };
  const leader = { ...process, is_leader: true };
  expect(isWithoutLeader([process, leader], nowMs)).toBe(false);
  expect(isWithoutLeader([process], nowMs)).toBe(true);
  expect(isWithoutLeader([process, { ...leader, seen_at: '2026-11-17T11:50:00Z' }], nowMs)).toBe(true);
  expect(isWithoutLeader([process, { ...process, started_at: '2026-11-17T11:59:00Z' }], nowMs)).toBe(false);
});

it('everything that is not in order has a sentence, the most urgent first', () => {
  const [before, after] = ['2026-11-17T11:00:00Z', '2026-11-18T00:00:00Z'];
  const leader = { process_id: '1', host: 'a', version: '1', started_at: before, is_leader: true };
  const good = {
    processes: [{ ...leader, seen_at: '2026-11-17T11:59:30Z' }],
    maintenance: [{ chore: 'counts', ran_at: after, failed_at: before }],
    waiting: [
      { work: 'erasures', count: 3, oldest_seconds: 86_400 },
      { work: 'removals', count: 0, oldest_seconds: 100_000 },
    ],
    partitions: [{ table: 'interactions', count: 2, ends_at: after }],
    nodes: [{ name: 'worker', port: 5432, is_active: true }],
    receipts_kept_days: 30,
    deleted_organisations_kept_days: 30,
  };
  expect(problemsIn(good, nowMs)).toEqual([]);
  const bad = {
    ...good,
    processes: [{ ...leader, seen_at: before }],
    maintenance: [...good.maintenance, { chore: 'receipts', ran_at: before, failed_at: after }],
    waiting: [{ work: 'erasures', count: 1, oldest_seconds: 86_401 }],
    partitions: [{ table: 'interactions', count: 2, ends_at: before }],
    nodes: [{ name: 'worker', port: 5432, is_active: false }],
  };
  expect(problemsIn(bad, nowMs)).toEqual([
    'New rows of interactions have no partition.',
    'The node worker is inactive.',
    'No process runs maintenance.',
    'The chore “receipts” fails.',
    'Waiting for more than a day: erasures.',
    '1 process stopped reporting.',
  ]);
});

it('rows with problems come first, the others in their order', () => {
  expect(troubledFirst([1, 2, 3, 4], (row) => row % 2 === 0)).toEqual([2, 4, 1, 3]);
});

it('details of an act are one line', () => {
  expect(describeDetails({ permissions: ['data:read', 'data:write'], label: null, limit: 5 })).toBe(
    'permissions: data:read, data:write; label: none; limit: 5',
  );
  expect(describeDetails({})).toBe('');
});

it('only the origin of an address is kept', () => {
  expect(originOf(' https://intake.example.com:8443/console?x=1 ')).toBe('https://intake.example.com:8443');
  expect(originOf('javascript:alert(1)')).toBe('');
  expect(originOf('intake.example.com')).toBe('');
});

it('the command counts in whole days until a time', () => {
  expect(daysUntil('2026-11-19T00:00:00Z', nowMs)).toBe('2d');
  expect(daysUntil('2026-11-01T00:00:00Z', nowMs)).toBe('1d');
});
