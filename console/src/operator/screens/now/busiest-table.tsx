import { type Column, Table } from '../../../parts/table.tsx';
import type { BusyOrganisation, Traffic } from '../../api/types.ts';
import { Bar } from '../../parts/bar.tsx';
import { OrganisationLink } from '../../parts/organisation-link.tsx';
import { measureNames, measures } from './measures.ts';

interface BusiestTableProps {
  readonly organisations: readonly BusyOrganisation[];
  readonly by: keyof Traffic;
}

/** Shows the busiest organisations. Each bar is relative to the largest number in its column. */
export function BusiestTable({ organisations, by }: BusiestTableProps) {
  const columns: readonly Column<BusyOrganisation>[] = [
    { title: 'Organisation', cell: (row) => <Who {...row} /> },
    ...measureNames.map((name) => {
      const { title, tone, format } = measures[name];
      const largest = Math.max(...organisations.map((row) => row[name]));
      return {
        title,
        numeric: true,
        cell: (row: BusyOrganisation) => (
          <Bar share={largest === 0 ? 0 : row[name] / largest} tone={tone} strong={name === by}>
            {row[name] === 0 ? <span className="muted">0</span> : format(row[name])}
          </Bar>
        ),
      };
    }),
  ];
  return (
    <div className="busiest">
      <Table
        caption={`Organisations by ${measures[by].title.toLowerCase()}`}
        columns={columns}
        rows={organisations}
        keyOf={({ organisation_id }) => organisation_id}
      />
    </div>
  );
}

function Who({ organisation_id, slug, name }: BusyOrganisation) {
  if (slug === null)
    return (
      <>
        Unknown organisation <div className="hint id">{organisation_id}</div>
      </>
    );
  return (
    <>
      <OrganisationLink slug={slug}>{name ?? slug}</OrganisationLink>
      <div className="hint">{slug}</div>
    </>
  );
}
