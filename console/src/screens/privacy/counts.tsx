import { countOf, formatNumber } from '../../format/format.ts';

type Counts = Readonly<Record<string, number>>;

export function totalOf(counts: Counts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** Shows a total that expands to the individual counts. */
export function CountsByName({ counts, one }: { readonly counts: Counts; readonly one: string }) {
  const total = totalOf(counts);
  if (total === 0) return <span className="muted">none</span>;
  return (
    <details>
      <summary>{countOf(total, one)}</summary>
      <ul className="plain-list">
        {Object.entries(counts)
          .filter(([, count]) => count > 0)
          .toSorted()
          .map(([name, count]) => (
            <li key={name}>
              {name}: {formatNumber(count)}
            </li>
          ))}
      </ul>
    </details>
  );
}
