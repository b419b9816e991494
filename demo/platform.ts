import type { Chance } from './chance.ts';

/** A fictional student-discount platform: its records by type, with referenced types first. */
export type Platform = Readonly<Record<string, readonly object[]>>;

export interface Size {
  readonly shops: number;
  readonly customers: number;
  readonly transactions: number;
  readonly interactions: number;
}

const kinds: Readonly<Record<string, readonly string[]>> = {
  'Food and drink': ['Bakery', 'Noodle Bar', 'Coffee House', 'Pizzeria', 'Juice Bar'],
  Fashion: ['Denim', 'Vintage', 'Sneakers', 'Outfitters'],
  Books: ['Bookshop', 'Comics', 'Stationers'],
  Travel: ['Coaches', 'Hostels', 'Cycles'],
  Technology: ['Laptops', 'Phones', 'Headphones'],
  Sport: ['Climbing', 'Swimming', 'Gym'],
};
const firstNames = [
  ...['Corner', 'Riverside', 'Harbour', 'Station', 'Old Mill', 'Union', 'Market', 'Campus', 'Garden'],
  ...['Copper', 'Lantern', 'Bridge', 'Orchard', 'Northgate'],
];
const places = [
  { city: 'Leeds', region: 'GB', latitude: 53.8, longitude: -1.55 },
  { city: 'Manchester', region: 'GB', latitude: 53.48, longitude: -2.24 },
  { city: 'Bristol', region: 'GB', latitude: 51.45, longitude: -2.59 },
  { city: 'Dublin', region: 'IE', latitude: 53.35, longitude: -6.26 },
  { city: 'Utrecht', region: 'NL', latitude: 52.09, longitude: 5.12 },
];
const courseNames = [
  'Marine biology',
  'History',
  'Computer science',
  'Law',
  'Nursing',
  'Architecture',
  'Music',
];
const tagNames = ['vegan', 'late opening', 'second hand', 'online', 'group discount', 'free delivery'];

export function makePlatform(chance: Chance, size: Size): Platform {
  const shops = list(size.shops, (at) => makeShop(chance, at));
  const offers = shops.flatMap((shop, at) =>
    list(1 + Math.floor(chance.number() * 3), (of) => makeOffer(chance, shop, `${at} ${of}`)),
  );
  const students = list(size.customers, (at) => makeCustomer(chance, at));
  const platform = {
    shops: shops.map(({ category: _, place: __, ...shop }) => shop),
    ...aroundShops(chance, shops),
    offers,
    institutes: list(institutes, (at) => ({
      institute_id: chance.idOf(`institute ${at}`),
      name: `${placeOf(at).city} ${['University', 'Polytechnic', 'College of Art'][at % 3]}`,
      region: placeOf(at).region,
    })),
    courses: courseNames.map((name, at) => ({ course_id: chance.idOf(`course ${at}`), name })),
    customers: students,
    'student-favourites': list(Math.floor(size.customers / 2), (at) => ({
      student_favourite_id: chance.idOf(`favourite ${at}`),
      student_id: chance.pickSkewed(students).customer_id,
      shop_id: chance.pickSkewed(shops).shop_id,
    })),
    transactions: list(size.transactions, (at) => makeTransaction(chance, at, shops, offers, students)),
  };
  const bought = platform.transactions.filter(({ student_id }) => student_id !== undefined);
  const interactions = list(size.interactions, (at) => {
    const made = makeInteraction(chance, at, shops, offers, students);
    return at % 10 === 0 ? { ...made, ...followedBy(chance, at, chance.pick(bought)) } : made;
  });
  return { ...platform, interactions };
}

const institutes = 12;
const hourMs = 3_600_000;

function list<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

const placeOf = (at: number) => places[at % places.length] as (typeof places)[number];

type Shop = ReturnType<typeof makeShop>;
type Offer = ReturnType<typeof makeOffer>;
type Student = ReturnType<typeof makeCustomer>;
type Transaction = ReturnType<typeof makeTransaction>;

function makeShop(chance: Chance, at: number) {
  const category = chance.pick(Object.keys(kinds));
  const place = chance.pick(places);
  const name = `${chance.pick(firstNames)} ${chance.pick(kinds[category] as readonly string[])}`;
  const is_public = chance.number() < 0.95;
  return { shop_id: chance.idOf(`shop ${at}`), name, region: place.region, is_public, category, place };
}

/** The category, branch and tag of a shop. */
function aroundShops(chance: Chance, shops: readonly Shop[]): Platform {
  return {
    categories: Object.keys(kinds).map((name) => ({
      category_id: chance.idOf(`category ${name}`),
      name,
      region: 'GB',
    })),
    'shop-categories': shops.map(({ shop_id, category, region }, at) => ({
      shop_category_id: chance.idOf(`shop category ${at}`),
      shop_id,
      category_id: chance.idOf(`category ${category}`),
      region,
    })),
    branches: shops.map(({ shop_id, name, region, place: { city, latitude, longitude } }, at) => ({
      branch_id: chance.idOf(`branch ${at}`),
      shop_id,
      name: `${name}, ${city}`,
      region,
      latitude: Number((latitude + chance.number() / 20).toFixed(4)),
      longitude: Number((longitude + chance.number() / 20).toFixed(4)),
    })),
    tags: tagNames.map((name, at) => ({ tag_id: chance.idOf(`tag ${at}`), name })),
    'shop-tags': shops.map(({ shop_id }, at) => ({
      shop_tag_id: chance.idOf(`shop tag ${at}`),
      shop_id,
      tag_id: chance.idOf(`tag ${at % tagNames.length}`),
    })),
  };
}

function makeOffer(chance: Chance, { shop_id, name, region }: Shop, number: string) {
  const isShare = chance.number() < 0.7;
  const share = chance.pick(['tenth', 'fifth', 'quarter'] as const);
  const off = chance.pick([2, 5]);
  return {
    offer_id: chance.idOf(`offer ${number}`),
    shop_id,
    name: isShare ? `Student ${share} at ${name}` : `${off} off at ${name}`,
    type: isShare ? 'percentage' : 'fixed',
    value: isShare ? { tenth: 10, fifth: 20, quarter: 25 }[share] : off,
    region,
    is_enabled: chance.number() < 0.9,
  };
}

function makeCustomer(chance: Chance, at: number) {
  const born = { year: 1998 + Math.floor(chance.number() * 9), month: 1 + Math.floor(chance.number() * 9) };
  return {
    customer_id: chance.idOf(`customer ${at}`),
    user_id: chance.idOf(`user ${at}`),
    region: chance.pick(places).region,
    birthdate: `${born.year}-0${born.month}-1${Math.floor(chance.number() * 10)}`,
    institute_id: chance.idOf(`institute ${Math.floor(chance.number() * institutes)}`),
    course_id: chance.idOf(`course ${Math.floor(chance.number() * courseNames.length)}`),
    gender: chance.pick(['female', 'male', 'not said']),
    created: chance.instant(),
  };
}

function makeTransaction(
  chance: Chance,
  at: number,
  shops: readonly Shop[],
  offers: readonly Offer[],
  students: readonly Student[],
) {
  // Half of the transactions use an offer.
  const offer = chance.number() < 0.5 ? chance.pickSkewed(offers) : undefined;
  const { shop_id, region } = offer ?? chance.pickSkewed(shops);
  const amount = Number((3 + 40 * chance.number() ** 3).toFixed(2));
  return {
    transaction_id: chance.idOf(`transaction ${at}`),
    shop_id,
    region,
    savings: Number((amount * chance.pick([0.1, 0.2, 0.25])).toFixed(2)),
    amount,
    ...(chance.number() < 0.9 && { student_id: chance.pickSkewed(students).customer_id }),
    ...(offer && { offer_id: offer.offer_id }),
    source: chance.pick(['online', 'in-store']),
    created: chance.instant(),
  };
}

const interactionTypes = ['PAGE_VIEW', 'PAGE_VIEW', 'PAGE_VIEW', 'SHARE', 'DISCOUNT_CODE', 'FILTER_CLICK'];

function makeInteraction(
  chance: Chance,
  at: number,
  shops: readonly Shop[],
  offers: readonly Offer[],
  students: readonly Student[],
) {
  const { city, region: country } = chance.pick(places);
  const isOffer = chance.number() < 0.5;
  return {
    interaction_type: chance.pick(interactionTypes),
    ...(chance.number() < 0.6
      ? { student_id: chance.pickSkewed(students).customer_id }
      : { user_id: `visitor-${Math.floor(chance.number() * 10_000)}` }),
    item_type: isOffer ? 'OFFER' : 'SHOP',
    item_id: isOffer ? chance.pick(offers).offer_id : chance.pickSkewed(shops).shop_id,
    city,
    country,
    platform: chance.pick(['ANDROID', 'IOS', 'WEB']),
    event_timestamp: chance.instant(),
    ...(chance.number() < 0.3 && recommended(chance, at)),
  };
}

const recommended = (chance: Chance, at: number) => ({
  source: 'SERVICE',
  recommendation_id: chance.idOf(`recommendation ${at}`),
});

/** The fields of a recommendation that the student followed within the 12 hours before the transaction. */
function followedBy(chance: Chance, at: number, { student_id, shop_id, offer_id, created }: Transaction) {
  return {
    user_id: undefined,
    student_id,
    item_type: offer_id ? 'OFFER' : 'SHOP',
    item_id: offer_id ?? shop_id,
    event_timestamp: new Date(Date.parse(created) - chance.number() * 12 * hourMs).toISOString(),
    ...recommended(chance, at),
  };
}

/** A shop that is uploaded after its transactions. */
export const lateShop = {
  shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01',
  name: 'Corner Bakery',
  region: 'GB',
};

/** Adds typical mistakes, in one out of `oneIn` records. */
export function withMistakes(type: string, records: readonly object[], oneIn = 250): object[] {
  return records.map((record, at) => {
    if (at % oneIn !== oneIn - 1) return record;
    const kind = Math.floor(at / oneIn) % 4;
    if (kind === 0) return { ...record, region: 'United Kingdom' };
    if (type === 'customers') return kind === 1 ? { ...record, birthdate: '31.12.2004' } : record;
    return kind === 1 ? { ...record, amount: '12,90' } : { ...record, shop_id: lateShop.shop_id };
  });
}
