import { expect, it } from 'vitest';
import { quotaOf, quotaRefusal } from './quota.ts';

const none = { records_stored_max: null, bytes_stored_max: null, records_stored: null, bytes_stored: null };

it.each([
  ['no quota', {}],
  ['a removed quota', { records_stored: 100 }],
  ['a quota that has not been measured yet', { records_stored_max: 10 }],
  ['less than 80 %', { records_stored_max: 100, records_stored: 79 }],
])('%s is not reported and refuses nothing', (_what, own) => {
  const quota = quotaOf({ ...none, ...own });
  expect(quota).toBeUndefined();
  expect(quotaRefusal(quota, undefined)).toBeUndefined();
});

it('from 80 % on the header has what is used, and nothing is refused yet', () => {
  const quota = quotaOf({ ...none, records_stored_max: 100, records_stored: 80 });
  expect(quota?.header).toBe('"records";used=80;max=100');
  expect(quota?.near).toEqual([{ what: 'records', used: 80, max: 100 }]);
  expect(quotaRefusal(quota, undefined)).toBeUndefined();
});

it('only quotas near their limit are reported, and a full one refuses', () => {
  const both = { records_stored_max: 100, records_stored: 99, bytes_stored_max: 1_000, bytes_stored: 1_000 };
  expect(quotaOf(both)?.header).toBe('"records";used=99;max=100, "bytes";used=1000;max=1000');
  expect(quotaRefusal(quotaOf(both), undefined)?.message).toContain(
    'The organisation may store 1000 bytes and has 1000; ',
  );
  expect(quotaOf({ ...both, bytes_stored: 10 })?.header).toBe('"records";used=99;max=100');
});

it('visitors do not see any figures', () => {
  const full = quotaOf({ ...none, records_stored_max: 77, records_stored: 78 });
  expect(quotaRefusal(full, undefined)?.message).toMatch(/77 .*78/);
  expect(quotaRefusal(full, '192.0.2.1')).toMatchObject({ code: 'quota_exceeded', status: 403 });
  expect(quotaRefusal(full, '192.0.2.1')?.message).not.toMatch(/7[78]/);
});
