import { describe, expect, it } from 'vitest';
import { isoOf } from '../../test/support/iso-of.ts';
import { readDate, readDateTime, unixMsOf } from './times.ts';

describe('readDateTime', () => {
  it.each([
    ['2026-03-14T09:26:53Z', '2026-03-14T09:26:53.000000Z'],
    ['2026-03-14T09:26:53', '2026-03-14T09:26:53.000000Z'],
    ['2026-03-14t09:26z', '2026-03-14T09:26:00.000000Z'],
    ['2026-03-14T09:26:53.5', '2026-03-14T09:26:53.500000Z'],
    ['2026-03-14T09:26:53.123456789Z', '2026-03-14T09:26:53.123456Z'],
    ['2026-03-14T00:26:53.000001+02:00', '2026-03-13T22:26:53.000001Z'],
    ['2026-12-31T23:59:59.999999-0001', '2027-01-01T00:00:59.999999Z'],
    ['2026-03-14T09:26:53+05', '2026-03-14T04:26:53.000000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000Z'],
    ['0001-01-01T05:00:00+05:00', '0001-01-01T00:00:00.000000Z'],
    ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.999999Z'],
    ['2000-02-29T12:00:00Z', '2000-02-29T12:00:00.000000Z'],
  ])('%s is %s', (sent, stored) => {
    const instant = readDateTime(sent);
    expect(instant === undefined ? instant : isoOf(instant)).toBe(stored);
  });

  it.each([
    '2026-02-30T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-03-14 09:26:53Z',
    '2026-03-14',
    '2026-03-14T24:00:00Z',
    '2026-03-14T09:60:00Z',
    '2016-12-31T23:59:60Z',
    '2026-03-14T09:26:53.Z',
    '2026-03-14T09:26:53,5Z',
    '2026-03-14T09:26:53+24:00',
    '2026-03-14T09:26:53+02:60',
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '20260314T092653Z',
    '+012026-03-14T09:26:53Z',
    '2026-03-14T09:26:53Z ',
    '٢٠٢٦-03-14T09:26:53Z',
    'now',
    '',
  ])('%j is refused', (sent) => expect(readDateTime(sent)).toBeUndefined());
});

describe('readDate', () => {
  it.each([
    ['2000-01-01', 0],
    ['1999-12-31', -1],
    ['2004-02-29', 1_520],
    ['0001-01-01', -730_119],
    ['9999-12-31', 2_921_939],
  ])('%s is day %i', (day, days) => expect(readDate(day)).toBe(days));
  it.each(['2003-02-29', '2004-02-30', '2004-04-31', '0000-01-01', '2004-2-9', '2004-02-09T00:00:00Z'])(
    '%s is not an instant',
    (day) => expect(readDate(day)).toBeUndefined(),
  );
});

it('every day and millisecond agrees with the platform', () => {
  const wrong: string[] = [];
  for (let ms = Date.UTC(1600, 0, 1); ms < Date.UTC(2500, 0, 1); ms += 86_400_000 * 3.7 + 1) {
    const iso = new Date(ms).toISOString();
    const instant = readDateTime(iso) as number;
    if (unixMsOf(instant) !== Date.parse(iso) || isoOf(instant) !== `${iso.slice(0, 23)}000Z`)
      wrong.push(iso);
  }
  expect(wrong).toEqual([]);
});
