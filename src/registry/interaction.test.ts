import { expect, it } from 'vitest';
import { isoOf } from '../../test/support/iso-of.ts';
import { eventTime } from './interaction.ts';

it.each([
  [1, '1970-01-01T00:00:01.000000Z'],
  [1_773_480_413, '2026-03-14T09:26:53.000000Z'],
  [99_999_999_999, '5138-11-16T09:46:39.000000Z'],
  [100_000_000_000, '1973-03-03T09:46:40.000000Z'],
  [1_773_480_413_589, '2026-03-14T09:26:53.589000Z'],
  [253_402_300_799_999, '9999-12-31T23:59:59.999000Z'],
  ['2026-03-14T09:26:53.589793+01:00', '2026-03-14T08:26:53.589793Z'],
])('31: the event_timestamp %s is the instant %s', (sent, iso) => {
  const instant = eventTime(sent);
  expect(instant === undefined ? instant : isoOf(instant)).toBe(iso);
});

it.each([0, -1, 1.5, 253_402_300_800_000, 'yesterday', ''])(
  '31: the event_timestamp %j is not an instant',
  (sent) => {
    expect(eventTime(sent)).toBeUndefined();
  },
);
