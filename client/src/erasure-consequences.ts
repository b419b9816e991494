import type { CountedErasure } from './erasure-requests.ts';

/** Describes what some erasures would do, for people who have to confirm it. */
export function consequencesOf(counted: readonly CountedErasure[]): string {
  const rows = new Map<string, number>();
  for (const one of counted)
    for (const [table, count] of Object.entries(one.rows)) rows.set(table, (rows.get(table) ?? 0) + count);
  const unlinked = rows.get('interactions_unlinked') ?? 0;
  rows.delete('interactions_unlinked');
  const erased = [...rows].filter(([, count]) => count > 0).map(([table, count]) => counting(count, table));
  const isAnonymised = counted.every(({ mode }) => mode === 'anonymise');
  const atLeast = counted.every(({ complete }) => complete) ? '' : 'at least ';
  const effects = [
    ...(erased.length > 0 ? [`${isAnonymised ? 'erases' : 'deletes'} ${atLeast}${listOf(erased)}`] : []),
    ...(unlinked > 0
      ? [`removes the user id from ${atLeast}${counting(unlinked, 'interactions')} of other students`]
      : []),
  ];
  const isKept = isAnonymised && (rows.get('transactions') || rows.get('interactions'));
  const unknown = counted.reduce((sum, one) => sum + one.unknown_customer_ids.length, 0);
  return [
    effects.length > 0
      ? `This ${effects.join(', and ')}.`
      : atLeast === ''
        ? 'Nothing is stored about these people.'
        : 'Nothing was found so far, but counting took too long.',
    ...(isKept ? ['Transactions and interactions are kept without the person.'] : []),
    ...(unknown > 0
      ? [`${counting(unknown, 'customer ids')} ${unknown === 1 ? 'is' : 'are'} not stored.`]
      : []),
  ].join(' ');
}

function counting(count: number, table: string): string {
  const name = table.replaceAll('_', ' ');
  return `${count.toLocaleString('en-US')} ${count === 1 ? name.replace(/s$/, '') : name}`;
}

function listOf(parts: readonly string[]): string {
  return [parts.slice(0, -1).join(', '), ...parts.slice(-1)].filter((part) => part !== '').join(' and ');
}
