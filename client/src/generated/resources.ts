// Generated from openapi.json by npm run generate. Do not edit.

import type { components } from './api.ts';

export type ResourceType =
  | 'customers'
  | 'transactions'
  | 'offers'
  | 'shops'
  | 'branches'
  | 'categories'
  | 'shop-categories'
  | 'institutes'
  | 'courses'
  | 'tags'
  | 'shop-tags'
  | 'keywords'
  | 'shop-keywords'
  | 'student-favourites';

export interface Resource {
  /** The field with the record's id. */
  readonly idField: string;
  readonly recordsPerRequestMax: number;
  /** Everything of order 0 is uploaded before anything of order 1: the dependency table. */
  readonly order: number;
  /** Field to the type that it refers to, for those that the service checks. */
  readonly references: Readonly<Record<string, ResourceType>>;
}

export const resources: Readonly<Record<ResourceType, Resource>> = {
  'customers': {"idField":"customer_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'transactions': {"idField":"transaction_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops"}},
  'offers': {"idField":"offer_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops"}},
  'shops': {"idField":"shop_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'branches': {"idField":"branch_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops"}},
  'categories': {"idField":"category_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'shop-categories': {"idField":"shop_category_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops","category_id":"categories"}},
  'institutes': {"idField":"institute_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'courses': {"idField":"course_id","recordsPerRequestMax":1000,"order":0,"references":{}},
  'tags': {"idField":"tag_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'shop-tags': {"idField":"shop_tag_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops","tag_id":"tags"}},
  'keywords': {"idField":"keyword_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'shop-keywords': {"idField":"shop_keyword_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops","keyword_id":"keywords"}},
  'student-favourites': {"idField":"student_favourite_id","recordsPerRequestMax":5000,"order":1,"references":{"student_id":"customers","shop_id":"shops"}},
};

/** The fields of an interaction, with the format of their values. */
export const interactionFields: Readonly<Record<string, 'uuid' | null>> = {
  interaction_type: null,
  user_id: null,
  student_id: 'uuid',
  item_type: null,
  item_id: 'uuid',
  city: null,
  country: null,
  platform: null,
  event_timestamp: null,
  source: null,
  recommendation_id: 'uuid',
};

export const interactionsPerRequestMax = 5000;

export const resourceTypes = Object.keys(resources) as ResourceType[];

/** What is uploaded, per type. */
export interface RecordOf {
  'customers': components['schemas']['Customer'];
  'transactions': components['schemas']['Transaction'];
  'offers': components['schemas']['Offer'];
  'shops': components['schemas']['Shop'];
  'branches': components['schemas']['Branch'];
  'categories': components['schemas']['Category'];
  'shop-categories': components['schemas']['ShopCategory'];
  'institutes': components['schemas']['Institute'];
  'courses': components['schemas']['Course'];
  'tags': components['schemas']['Tag'];
  'shop-tags': components['schemas']['ShopTag'];
  'keywords': components['schemas']['Keyword'];
  'shop-keywords': components['schemas']['ShopKeyword'];
  'student-favourites': components['schemas']['StudentFavourite'];
}

/** What is read back, per type: every field, null where there is no value. */
export interface StoredRecordOf {
  'customers': components['schemas']['StoredCustomer'];
  'transactions': components['schemas']['StoredTransaction'];
  'offers': components['schemas']['StoredOffer'];
  'shops': components['schemas']['StoredShop'];
  'branches': components['schemas']['StoredBranch'];
  'categories': components['schemas']['StoredCategory'];
  'shop-categories': components['schemas']['StoredShopCategory'];
  'institutes': components['schemas']['StoredInstitute'];
  'courses': components['schemas']['StoredCourse'];
  'tags': components['schemas']['StoredTag'];
  'shop-tags': components['schemas']['StoredShopTag'];
  'keywords': components['schemas']['StoredKeyword'];
  'shop-keywords': components['schemas']['StoredShopKeyword'];
  'student-favourites': components['schemas']['StoredStudentFavourite'];
}
