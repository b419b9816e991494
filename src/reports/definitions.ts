/** In hours. There are only a few, because each is counted in advance. */
export const windows = { '1h': 1, '24h': 24, '7d': 168 } as const;
export type Window = keyof typeof windows;
export const windowNames = Object.keys(windows) as Window[];
export const longestWindowHours = Math.max(...Object.values(windows));

export const groupings = ['day', 'item_type', 'item', 'platform', 'country', 'recommendation'] as const;
export type Grouping = (typeof groupings)[number];

/** An SQL expression for an interaction's role in the report. */
export const basisOf = `
  case when source is not null and recommendation_id is not null then 'recommendation'
    when source is null and recommendation_id is null then 'browsing'
    when source is not null then 'service_without_recommendation'
    else 'recommendation_without_service' end`;

/** Longer values would not fit into an index. */
export const countryCharactersMax = 100;

/** Included in every response. */
export const definitions = {
  touch: 'an interaction with source SERVICE and a recommendation_id; of browsing, one with neither',
  unusable: 'an interaction with only one of the two; counted in unusable and nowhere else',
  students: 'distinct student_id of the touches',
  engaged_recommendations: 'distinct recommendation_id of the touches',
  discount_codes:
    'interactions of type DISCOUNT_CODE that are a touch, or are for the same item by the same student within the window after one; all others are of browsing',
  transactions:
    'not deleted, by their created; credited to the last touch of the same student within the window before: on the offer if there is one, else on the shop; to browsing by the same rule if there was no touch',
  share_of_transactions: 'transactions / all transactions of the range; with group_by=day of that day',
  days: 'UTC, by event_time of interactions and created of transactions',
} as const;

export const correlation =
  'These figures are correlation: they do not say that a recommendation was the cause of a purchase.';
