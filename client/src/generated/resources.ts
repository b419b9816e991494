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

/** The types that can be uploaded. */
export type UploadType = ResourceType | 'interactions';

export interface Resource {
  /** The path to upload to. */
  readonly path: string;
  /** The field with the record's id. The service assigns the id of an interaction, so it cannot be uploaded. */
  readonly idField: string;
  readonly recordsPerRequestMax: number;
  /** Everything of order 0 is uploaded before anything of order 1, as in the dependency table. */
  readonly order: number;
  /** By field: the type it refers to, for references that the service checks. */
  readonly references: Readonly<Record<string, ResourceType>>;
}

export const resources: Readonly<Record<UploadType, Resource>> = {
  'customers': {"path":"/v1/data/customers","idField":"customer_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'transactions': {"path":"/v1/data/transactions","idField":"transaction_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops"}},
  'offers': {"path":"/v1/data/offers","idField":"offer_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops"}},
  'shops': {"path":"/v1/data/shops","idField":"shop_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'branches': {"path":"/v1/data/branches","idField":"branch_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops"}},
  'categories': {"path":"/v1/data/categories","idField":"category_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'shop-categories': {"path":"/v1/data/shop-categories","idField":"shop_category_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops","category_id":"categories"}},
  'institutes': {"path":"/v1/data/institutes","idField":"institute_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'courses': {"path":"/v1/data/courses","idField":"course_id","recordsPerRequestMax":1000,"order":0,"references":{}},
  'tags': {"path":"/v1/data/tags","idField":"tag_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'shop-tags': {"path":"/v1/data/shop-tags","idField":"shop_tag_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops","tag_id":"tags"}},
  'keywords': {"path":"/v1/data/keywords","idField":"keyword_id","recordsPerRequestMax":5000,"order":0,"references":{}},
  'shop-keywords': {"path":"/v1/data/shop-keywords","idField":"shop_keyword_id","recordsPerRequestMax":5000,"order":1,"references":{"shop_id":"shops","keyword_id":"keywords"}},
  'student-favourites': {"path":"/v1/data/student-favourites","idField":"student_favourite_id","recordsPerRequestMax":5000,"order":1,"references":{"student_id":"customers","shop_id":"shops"}},
  'interactions': {"path":"/user-interactions/batch","idField":"interaction_id","recordsPerRequestMax":5000,"order":2,"references":{"student_id":"customers"}},
};

export const uploadTypes = Object.keys(resources) as UploadType[];

export const resourceTypes = uploadTypes.filter((type) => type !== 'interactions');

/** The record type of an interaction's item, by its item type. */
export const itemTypes: Readonly<Record<string, ResourceType>> = {"TAG":"tags","OFFER":"offers","SHOP":"shops","KEYWORD":"keywords"};

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

/** The codes of the service's errors, including those that only the console's pages receive. */
export const errorCodes: readonly string[] = ["malformed_request","malformed_json","malformed_utf8","malformed_encoding","nested_too_deeply","invalid_request","unauthorized","https_required","missing_permission","origin_not_allowed","organisation_suspended","quota_exceeded","not_found","unknown_type","record_not_found","receipt_not_found","run_not_found","interaction_not_found","erasure_not_found","access_request_not_found","access_request_expired","access_request_cancelled","lake_table_not_found","lake_file_not_found","method_not_allowed","timed_out","erasure_not_swept","too_many_erasures","run_ended","file_uploaded","too_many_runs","access_request_not_done","too_many_access_requests","report_off","lake_off","organisation_deleted","lake_version_gone","cursor_too_old","body_too_large","unsupported_media_type","unsupported_encoding","range_not_satisfiable","expectation_failed","idempotency_key_reused","too_many_failed_keys","too_many_requests","headers_too_large","internal","outcome_unknown","erasure_not_configured","lake_not_configured","database_unavailable","schema_behind","schema_ahead","stalled","overloaded","shutting_down","clock_differs","database_unsafe","out_of_descriptors","erasure_key_missing","lake_unavailable","not_signed_in","link_not_usable","token_not_usable","browser_key","other_page","two_sessions","other_session","other_organisation"];

/** The fields of an uploaded record, by record type. */
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

/** The fields of a record that is merged with the stored one, by record type. */
export interface ChangesOf {
  'customers': components['schemas']['CustomerChanges'];
  'transactions': components['schemas']['TransactionChanges'];
  'offers': components['schemas']['OfferChanges'];
  'shops': components['schemas']['ShopChanges'];
  'branches': components['schemas']['BranchChanges'];
  'categories': components['schemas']['CategoryChanges'];
  'shop-categories': components['schemas']['ShopCategoryChanges'];
  'institutes': components['schemas']['InstituteChanges'];
  'courses': components['schemas']['CourseChanges'];
  'tags': components['schemas']['TagChanges'];
  'shop-tags': components['schemas']['ShopTagChanges'];
  'keywords': components['schemas']['KeywordChanges'];
  'shop-keywords': components['schemas']['ShopKeywordChanges'];
  'student-favourites': components['schemas']['StudentFavouriteChanges'];
}

/** The fields of a stored record, by record type. Fields without a value are null. */
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
