import { limits } from '../limits.ts';
import {
  amount,
  boolean,
  country,
  date,
  dateTime,
  number,
  optional,
  type Problem,
  type RecordOf,
  reference,
  text,
  uuid,
} from './fields.ts';
import { describes, identifies, impersonal, type StoredField } from './personal.ts';

/** The first field is the record's identifier. */
export interface Resource<F extends Record<string, StoredField> = Record<string, StoredField>> {
  /** For messages and the API reference. */
  readonly singular: string;
  readonly fields: F;
  /** A valid record, which the API reference shows and a test sends. */
  readonly example: RecordOf<F>;
}

/** Makes the compiler check the example against the fields. */
function resource<F extends Record<string, StoredField>>(definition: Resource<F>): Resource<F> {
  return definition;
}

/** The last fields of every record type, in this order. */
const lifecycle = impersonal({
  created: optional(dateTime({ description: 'when the record was created, according to its source' })),
  updated: optional(
    dateTime({ description: 'when the record last changed; an older version never replaces a newer one' }),
  ),
  is_deleted: {
    ...optional(
      boolean({ description: 'marks the record as deleted; it is kept and can still be referenced' }),
    ),
    fallback: false,
  },
});

const named = impersonal({ name: text(), region: country() });

/**
 * Validation, SQL, the API description and the tests that cover every type are derived from this table. A new type needs
 * one entry here and one migration (see docs/adding-a-record-type.md).
 */
export const resources = {
  customers: resource({
    singular: 'customer',
    fields: {
      customer_id: identifies(uuid({ description: 'record identifier' })),
      user_id: identifies(uuid({ description: 'user identifier' })),
      region: describes(country()),
      birthdate: describes(optional(date({ description: 'date of birth' }))),
      institute_id: describes(
        optional(uuid({ description: 'educational institute; not checked for existence' })),
      ),
      course_id: describes(optional(uuid({ description: 'course; not checked for existence' }))),
      gender: describes(optional(text({ description: 'free text' }))),
      ...lifecycle,
    },
    example: {
      customer_id: 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11',
      user_id: '7b0e4c52-95d1-4a3e-8f26-6c1d9e0b3a42',
      region: 'GB',
      birthdate: '2004-02-29',
      institute_id: '1e9d8c7b-6a54-4f32-9b10-a8c7d6e5f401',
      course_id: '2d8c7b6a-5f43-4e21-8a09-b7d6e5f4c302',
      gender: 'female',
      updated: '2026-03-14T09:26:53Z',
    },
  }),
  transactions: resource({
    singular: 'transaction',
    fields: {
      ...impersonal({
        transaction_id: uuid(),
        shop_id: reference('shops'),
        region: country(),
        savings: amount({ minimum: 0, description: 'what the student saved' }),
        amount: amount({ exclusiveMinimum: 0, description: 'what the student paid' }),
      }),
      student_id: identifies(
        optional(uuid({ description: 'purchasing student; not checked for existence' })),
      ),
      ...impersonal({
        offer_id: optional(uuid({ description: 'offer used; not checked for existence' })),
        branch_id: optional(uuid({ description: 'branch location; not checked for existence' })),
        source: optional(text({ description: 'origin, for example online or in-store' })),
        discount_name: optional(text()),
        discount_type: optional(text({ description: 'for example percentage or fixed' })),
        discount_value: optional(amount()),
      }),
      ...lifecycle,
    },
    example: {
      transaction_id: 'e98e7d6c-5b43-4a21-8c09-5d86d5c4a312',
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
      region: 'GB',
      savings: 2.5,
      amount: 22.49,
      student_id: 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11',
      offer_id: '3c7b6a5f-4e32-4d10-9f98-c6e5f4d3b203',
      branch_id: '4b6a5f4e-3d21-4c09-8e87-d5f4e3c2a104',
      source: 'in-store',
      discount_name: 'Student tenth',
      discount_type: 'percentage',
      discount_value: 10,
      created: '2026-03-14T09:26:53.589793Z',
    },
  }),
  offers: resource({
    singular: 'offer',
    fields: impersonal({
      offer_id: uuid(),
      shop_id: reference('shops'),
      name: text(),
      type: text({ description: 'for example percentage or fixed' }),
      value: amount({ exclusiveMinimum: 0 }),
      region: country(),
      allowed_from: optional(dateTime({ description: 'start of validity' })),
      allowed_to: optional(dateTime({ description: 'end of validity' })),
      allowed_branches: optional(
        text({
          codePointsMax: limits.branchListCodePointsMax,
          description: 'branch ids, separated by commas',
        }),
      ),
      allowed_days: optional(text({ description: 'names of days, separated by commas' })),
      is_enabled: optional(boolean({ description: 'whether the offer is currently enabled' })),
      ...lifecycle,
    }),
    example: {
      offer_id: '3c7b6a5f-4e32-4d10-9f98-c6e5f4d3b203',
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
      name: 'Student tenth',
      type: 'percentage',
      value: 10,
      region: 'GB',
      allowed_from: '2026-01-01T00:00:00Z',
      allowed_to: '2026-12-31T23:59:59Z',
      allowed_branches: '4b6a5f4e-3d21-4c09-8e87-d5f4e3c2a104',
      allowed_days: 'Monday,Tuesday',
      is_enabled: true,
    },
  }),
  shops: resource({
    singular: 'shop',
    fields: impersonal({ shop_id: uuid(), ...named, is_public: optional(boolean()), ...lifecycle }),
    example: {
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
      name: 'Corner Bakery',
      region: 'GB',
      is_public: true,
      updated: '2026-03-14T09:26:53Z',
    },
  }),
  branches: resource({
    singular: 'branch',
    fields: impersonal({
      branch_id: uuid(),
      shop_id: reference('shops'),
      ...named,
      latitude: optional(number({ minimum: -90, maximum: 90, description: 'degrees' })),
      longitude: optional(number({ minimum: -180, maximum: 180, description: 'degrees' })),
      ...lifecycle,
    }),
    example: {
      branch_id: '4b6a5f4e-3d21-4c09-8e87-d5f4e3c2a104',
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
      name: 'Corner Bakery, High Street',
      region: 'GB',
      latitude: 51.5072,
      longitude: -0.1276,
    },
  }),
  categories: resource({
    singular: 'category',
    fields: impersonal({ category_id: uuid(), ...named, ...lifecycle }),
    example: { category_id: '6a5f4e3d-2c10-4b98-9d76-e4f3d2c1b005', name: 'Food and drink', region: 'GB' },
  }),
  'shop-categories': resource({
    singular: 'shop category',
    fields: impersonal({
      shop_category_id: uuid(),
      shop_id: reference('shops'),
      category_id: reference('categories'),
      region: country(),
      ...lifecycle,
    }),
    example: {
      shop_category_id: '8f4e3d2c-1b09-4a87-8c65-f3e2d1c0a906',
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
      category_id: '6a5f4e3d-2c10-4b98-9d76-e4f3d2c1b005',
      region: 'GB',
    },
  }),
  institutes: resource({
    singular: 'institute',
    fields: impersonal({ institute_id: uuid(), ...named, ...lifecycle }),
    example: {
      institute_id: '1e9d8c7b-6a54-4f32-9b10-a8c7d6e5f401',
      name: 'Northern Polytechnic',
      region: 'GB',
    },
  }),
  courses: resource({
    singular: 'course',
    fields: impersonal({ course_id: uuid(), name: text(), ...lifecycle }),
    example: { course_id: '2d8c7b6a-5f43-4e21-8a09-b7d6e5f4c302', name: 'Marine biology' },
  }),
  tags: resource({
    singular: 'tag',
    fields: impersonal({ tag_id: uuid(), name: text(), ...lifecycle }),
    example: { tag_id: '9e3d2c1b-0a98-4f76-9b54-02d1c0b9f807', name: 'vegan' },
  }),
  'shop-tags': resource({
    singular: 'shop tag',
    fields: impersonal({
      shop_tag_id: uuid(),
      shop_id: reference('shops'),
      tag_id: reference('tags'),
      ...lifecycle,
    }),
    example: {
      shop_tag_id: 'ad2c1b0a-9f87-4e65-8a43-11c0b9a8e708',
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
      tag_id: '9e3d2c1b-0a98-4f76-9b54-02d1c0b9f807',
    },
  }),
  keywords: resource({
    singular: 'keyword',
    fields: impersonal({ keyword_id: uuid(), name: text(), ...lifecycle }),
    example: { keyword_id: 'bc1b0a9f-8e76-4d54-9f32-20b9a8f7d609', name: 'sourdough' },
  }),
  'shop-keywords': resource({
    singular: 'shop keyword',
    fields: impersonal({
      shop_keyword_id: uuid(),
      shop_id: reference('shops'),
      keyword_id: reference('keywords'),
      ...lifecycle,
    }),
    example: {
      shop_keyword_id: 'cb0a9f8e-7d65-4c43-8e21-3fa8f7e6c510',
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
      keyword_id: 'bc1b0a9f-8e76-4d54-9f32-20b9a8f7d609',
    },
  }),
  'student-favourites': resource({
    singular: 'student favourite',
    fields: {
      ...impersonal({ student_favourite_id: uuid() }),
      student_id: identifies(
        reference('customers', { description: 'the student, who must be an existing customer' }),
      ),
      ...impersonal({ shop_id: reference('shops') }),
      ...lifecycle,
    },
    example: {
      student_favourite_id: 'da9f8e7d-6c54-4b32-9d10-4e97e6d5b411',
      student_id: 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11',
      shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
    },
  }),
} satisfies Record<string, Resource>;

export type ResourceType = keyof typeof resources;

export const resourceTypes = Object.keys(resources) as ResourceType[];

export function idFieldOf(type: ResourceType): string {
  const [id] = Object.keys(resources[type].fields);
  if (id === undefined) throw new Error(`the type ${type} has no fields`);
  return id;
}

export interface Reference {
  readonly field: string;
  readonly position: number;
  readonly type: ResourceType;
}

export function referencesOf(type: ResourceType): Reference[] {
  const { fields }: Resource = resources[type];
  return Object.entries(fields).flatMap(([field, { references }], position) =>
    references === undefined ? [] : [{ field, position, type: references as ResourceType }],
  );
}

export function referenceNotFound(type: ResourceType): Problem {
  const message = `refers to a missing ${resources[type].singular}; upload it to /v1/data/${type} first`;
  return { code: 'reference_not_found', message };
}

/** Caches a value per type, made when it is first used. */
export function perType<T, K extends string = ResourceType>(make: (type: K) => T): (type: K) => T {
  const made = new Map<K, T>();
  return (type) => {
    let value = made.get(type);
    if (value === undefined) {
      value = make(type);
      made.set(type, value);
    }
    return value;
  };
}
