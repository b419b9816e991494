/** A slow and simple implementation of the recommendations report that docs/uploading/recommendations.md defines. */

export interface TestInteraction {
  readonly interaction_id: string;
  readonly interaction_type: string;
  readonly student_id: string | null;
  readonly item_type: string;
  readonly item_id: string;
  readonly platform: string | null;
  readonly country: string | null;
  readonly source: 'SERVICE' | null;
  readonly recommendation_id: string | null;
  /** Milliseconds since 1970, like `created`. */
  readonly event_time: number;
}

export interface TestTransaction {
  readonly transaction_id: string;
  readonly student_id: string | null;
  readonly shop_id: string;
  readonly offer_id: string | null;
  /** An amount in hundredths, like `savings`, so that sums are exact. */
  readonly amount: number;
  readonly savings: number;
  readonly created: number | null;
  readonly is_deleted: boolean;
}

export interface AskedReport {
  /** A day in the API's format, like `to`. */
  readonly from: string;
  readonly to: string;
  readonly window: '1h' | '24h' | '7d';
  readonly group_by: 'day' | 'item_type' | 'item' | 'platform' | 'country' | 'recommendation';
}

const hourMs = 3_600_000;
const windowsMs = { '1h': hourMs, '24h': 24 * hourMs, '7d': 7 * 24 * hourMs };

/** A counted event: its time, and the event itself or the interaction that it is credited to. */
interface Counted {
  readonly at: number;
  readonly touch: TestInteraction;
}
interface Credited extends Counted {
  readonly sale: TestTransaction;
}

export function reportOf(
  asked: AskedReport,
  interactions: readonly TestInteraction[],
  transactions: readonly TestTransaction[],
) {
  const windowMs = windowsMs[asked.window];
  const fromMs = Date.parse(`${asked.from}T00:00:00Z`);
  const toMs = Date.parse(`${asked.to}T00:00:00Z`);
  const isInRange = (at: number) => at >= fromMs && at < toMs;
  const isWithin = (later: number, { event_time }: TestInteraction) =>
    later >= event_time && later < event_time + windowMs;
  const isTouch = ({ source, recommendation_id }: TestInteraction) =>
    source === 'SERVICE' && recommendation_id !== null;
  const isBrowsing = ({ source, recommendation_id }: TestInteraction) =>
    source === null && recommendation_id === null;
  const isLater = (a: TestInteraction, b: TestInteraction) =>
    a.event_time !== b.event_time ? a.event_time > b.event_time : a.interaction_id > b.interaction_id;
  const lastOf = (candidates: readonly TestInteraction[]) =>
    candidates.reduce<TestInteraction | undefined>(
      (last, next) => (last === undefined || isLater(next, last) ? next : last),
      undefined,
    );

  const touches = interactions.filter(isTouch);
  const browsing = interactions.filter(isBrowsing);

  const codes: Counted[] = [];
  for (const code of [...touches, ...browsing]) {
    if (code.interaction_type !== 'DISCOUNT_CODE') continue;
    const before = touches.filter(
      (touch) =>
        code.student_id !== null &&
        touch.student_id === code.student_id &&
        touch.item_type === code.item_type &&
        touch.item_id === code.item_id &&
        isWithin(code.event_time, touch),
    );
    codes.push({ at: code.event_time, touch: isTouch(code) ? code : (lastOf(before) ?? code) });
  }

  const sales = transactions.filter(({ is_deleted, created }) => !is_deleted && created !== null);
  const credited: Credited[] = [];
  for (const sale of sales) {
    const at = sale.created as number;
    const winner = [touches, browsing]
      .flatMap((of) => [
        lastOf(
          of.filter(
            (touch) =>
              sale.student_id !== null &&
              touch.student_id === sale.student_id &&
              touch.item_type === 'OFFER' &&
              touch.item_id === sale.offer_id &&
              isWithin(at, touch),
          ),
        ),
        lastOf(
          of.filter(
            (touch) =>
              sale.student_id !== null &&
              touch.student_id === sale.student_id &&
              touch.item_type === 'SHOP' &&
              touch.item_id === sale.shop_id &&
              isWithin(at, touch),
          ),
        ),
      ])
      .find((found) => found !== undefined);
    if (winner) credited.push({ at, touch: winner, sale });
  }

  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
  /** Returns the group as JSON, or undefined if the event has no group. */
  const groupOf = ({ at, touch }: Counted): string | undefined => {
    switch (asked.group_by) {
      case 'day':
        return JSON.stringify({ day: dayOf(at) });
      case 'item_type':
        return JSON.stringify({ item_type: touch.item_type });
      case 'item':
        return JSON.stringify({ item_type: touch.item_type, item_id: touch.item_id });
      case 'platform':
        return JSON.stringify({ platform: touch.platform });
      case 'country':
        return JSON.stringify({
          country: touch.country === null ? null : [...touch.country].slice(0, 100).join(''),
        });
      case 'recommendation':
        return touch.recommendation_id === null
          ? undefined
          : JSON.stringify({ recommendation_id: touch.recommendation_id });
    }
  };

  const inRange = {
    touches: touches.map((touch) => ({ at: touch.event_time, touch })).filter(({ at }) => isInRange(at)),
    browsing: browsing.map((touch) => ({ at: touch.event_time, touch })).filter(({ at }) => isInRange(at)),
    codes: codes.filter(({ at }) => isInRange(at)),
    credited: credited.filter(({ at }) => isInRange(at)),
    sales: sales.filter(({ created }) => isInRange(created as number)),
  };

  const figures = (
    of: readonly Counted[],
    isOf: (touch: TestInteraction) => boolean,
    isInGroup: (counted: Counted) => boolean,
    allTransactions: number,
  ) => {
    const own = of.filter(isInGroup);
    const ownCredited = inRange.credited.filter((one) => isOf(one.touch) && isInGroup(one));
    const transactionsOf = (type: string) =>
      ownCredited.filter(({ touch }) => touch.item_type === type).length;
    const distinct = (values: readonly (string | null)[]) =>
      new Set(values.filter((value) => value !== null)).size;
    return {
      touches: own.length,
      ...(isOf === isTouch && {
        engaged_recommendations: distinct(own.map(({ touch }) => touch.recommendation_id)),
      }),
      students: distinct(own.map(({ touch }) => touch.student_id)),
      discount_codes: inRange.codes.filter((one) => isOf(one.touch) && isInGroup(one)).length,
      transactions: ownCredited.length,
      transactions_by_offer: transactionsOf('OFFER'),
      transactions_by_shop: transactionsOf('SHOP'),
      revenue: ownCredited.reduce((sum, { sale }) => sum + sale.amount, 0) / 100,
      savings: ownCredited.reduce((sum, { sale }) => sum + sale.savings, 0) / 100,
      share_of_transactions:
        allTransactions === 0 ? null : Math.round((ownCredited.length / allTransactions) * 1e6) / 1e6,
    };
  };
  const both = (isInGroup: (counted: Counted) => boolean, allTransactions: number) => ({
    recommendations: figures(inRange.touches, isTouch, isInGroup, allTransactions),
    browsing: figures(inRange.browsing, isBrowsing, isInGroup, allTransactions),
  });

  const keys = new Set(
    [...inRange.touches, ...inRange.browsing, ...inRange.codes, ...inRange.credited]
      .map(groupOf)
      .filter((key) => key !== undefined),
  );
  const groups = [...keys].map((key) => {
    const group = JSON.parse(key) as Record<string, string | null>;
    const allTransactions =
      asked.group_by === 'day'
        ? inRange.sales.filter(({ created }) => dayOf(created as number) === group.day).length
        : inRange.sales.length;
    const found = both((counted) => groupOf(counted) === key, allTransactions);
    return { group, ...found, ...(asked.group_by === 'recommendation' && { browsing: null }) };
  });
  const unusable = interactions.filter(({ event_time }) => isInRange(event_time));
  return {
    total: both(() => true, inRange.sales.length),
    all: {
      transactions: inRange.sales.length,
      revenue: inRange.sales.reduce((sum, { amount }) => sum + amount, 0) / 100,
      savings: inRange.sales.reduce((sum, { savings }) => sum + savings, 0) / 100,
    },
    unusable: {
      service_without_recommendation: unusable.filter(
        (i) => i.source !== null && i.recommendation_id === null,
      ).length,
      recommendation_without_service: unusable.filter(
        (i) => i.source === null && i.recommendation_id !== null,
      ).length,
    },
    groups,
  };
}
