import { limits } from '../limits.ts';
import {
  type Field,
  oneOf,
  optional,
  type Problem,
  type RecordOf,
  reference,
  type Schema,
  text,
  uuid,
} from './fields.ts';
import {
  describes,
  identifies,
  identifiesAlone,
  impersonal,
  personId,
  type StoredField,
} from './personal.ts';
import type { ResourceType } from './resources.ts';
import { type Instant, instantOf, latestMs, readDateTime } from './times.ts';

export const itemTypes = {
  TAG: 'tags',
  OFFER: 'offers',
  SHOP: 'shops',
  KEYWORD: 'keywords',
} as const satisfies Record<string, ResourceType>;
export type ItemType = keyof typeof itemTypes;

const badTimestamp: Problem = {
  code: 'invalid_format',
  message:
    'must be a positive integer (epoch seconds, or milliseconds from 100000000000 on) or an ISO 8601 date-time, up to the year 9999',
};
const wantsTimestamp: Problem = { ...badTimestamp, code: 'wrong_type' };

function eventTimestamp() {
  return {
    schema: {
      type: ['integer', 'string'],
      minimum: 1,
      maximum: latestMs,
      format: 'date-time',
      description:
        'when the interaction happened: an ISO 8601 date-time, or an integer of epoch seconds (below 100000000000) or milliseconds',
    } as Schema<number | string>,
    column: 'jsonb',
    plain: { kind: 'eventTimestamp' },
    required: true,
    read(value) {
      if (typeof value !== 'number' && typeof value !== 'string') return wantsTimestamp;
      return eventTime(value) === undefined ? badTimestamp : value;
    },
  } satisfies Field;
}

export function checkedEventTime(sent: number | string): Instant {
  const instant = eventTime(sent);
  if (instant === undefined) throw new Error('a checked event_timestamp names no instant');
  return instant;
}

export function eventTime(sent: number | string): Instant | undefined {
  if (typeof sent === 'string') return readDateTime(sent);
  if (!Number.isInteger(sent) || sent <= 0) return undefined;
  return instantOf(sent < limits.epochSecondsEnd ? sent * 1_000 : sent);
}

/** It gets its id when it is stored, and never changes afterwards. */
export const interaction = {
  ...impersonal({ interaction_type: oneOf(['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE']) }),
  user_id: identifiesAlone(
    optional(
      personId({
        codePointsMax: limits.interactionUserCodePointsMax,
        description: 'pseudonymous user identifier; a UUID is stored in lower case',
      }),
    ),
  ),
  student_id: identifies(
    optional(reference('customers', { description: 'the student, who must be an existing customer' })),
  ),
  ...impersonal({
    item_type: oneOf(Object.keys(itemTypes) as ItemType[]),
    item_id: uuid({ description: 'id of an existing item of the type in `item_type`' }),
  }),
  city: describes(optional(text({ description: 'where the interaction happened' }))),
  country: describes(optional(text({ description: 'where the interaction happened' }))),
  ...impersonal({
    platform: optional(oneOf(['ANDROID', 'IOS', 'WEB', 'OTHER'])),
    event_timestamp: eventTimestamp(),
    source: optional(
      oneOf(['SERVICE'], { description: 'SERVICE if the interaction came from a recommendation, else null' }),
    ),
    recommendation_id: optional(uuid({ description: 'the recommendation that the interaction came from' })),
  }),
} satisfies Record<string, StoredField>;

export type Interaction = RecordOf<typeof interaction>;

export const interactionExample: Interaction = {
  interaction_type: 'PAGE_VIEW',
  user_id: 'visitor-7d1f',
  student_id: 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11',
  item_type: 'SHOP',
  item_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
  city: 'Leeds',
  country: 'GB',
  platform: 'WEB',
  event_timestamp: '2026-03-14T09:26:53Z',
  source: 'SERVICE',
  recommendation_id: '0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9',
};
