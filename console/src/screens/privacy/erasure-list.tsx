import { useInfiniteQuery } from '@tanstack/react-query';
import { certificateAddress, erasurePagesQuery } from '../../api/erasures.ts';
import type { Erasure } from '../../api/types.ts';
import { formatNumber } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Pages } from '../../parts/more.tsx';
import { Empty } from '../../parts/notices.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { CountsByName } from './counts.tsx';

const states: Readonly<Record<Erasure['state'], readonly [Tone, string]>> = {
  pending: ['warn', 'Hidden, removal pending'],
  running: ['warn', 'Hidden, removal running'],
  swept: ['good', 'Removed'],
  done: ['good', 'Removed'],
};

const columns: readonly Column<Erasure>[] = [
  { title: 'Requested', cell: ({ requested }) => <Time value={requested} /> },
  { title: 'State', cell: (erasure) => <State {...erasure} /> },
  { title: 'Mode', cell: ({ mode }) => (mode === 'delete' ? 'Delete' : 'Anonymise') },
  { title: 'People', numeric: true, cell: ({ people }) => formatNumber(people) },
  { title: 'Rows changed', cell: ({ rows }) => <CountsByName counts={rows} one="row" /> },
  { title: 'Finished', cell: ({ swept }) => <Time value={swept} absent="not yet" /> },
  { title: 'Certificate', cell: (erasure) => <Certificate {...erasure} /> },
];

/** Shows an erasure's state. The lake files are rewritten last, after everything else is removed. */
function State({ state, lake }: Erasure) {
  const [tone, text] = lake === 'pending' ? (['warn', 'Removed, lake pending'] as const) : states[state];
  return <Badge tone={tone}>{text}</Badge>;
}

function Certificate({ erasure_id, swept }: Erasure) {
  if (swept === null) return <span className="muted">once removed</span>;
  return (
    <a href={certificateAddress(erasure_id)} target="_blank" rel="noreferrer">
      Open<span className="visually-hidden"> the certificate of erasure {erasure_id} in a new tab</span>
    </a>
  );
}

const everyMs = 3_000;

/** Lists the erasures, and refreshes while a sweep is running or lake files are being rewritten. */
export function ErasureList() {
  const list = useInfiniteQuery({
    ...erasurePagesQuery,
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ erasures }) =>
        erasures.some(({ swept, lake }) => swept === null || lake === 'pending'),
      )
        ? everyMs
        : false,
  });
  return (
    <section className="card">
      <h2>Requested erasures</h2>
      <Pages
        query={list}
        what="The erasures"
        one="erasure"
        rowsOf={({ erasures }) => erasures}
        empty={
          <Empty title="Nobody has been erased.">
            <p>When a person asks for it, erase them with the form below.</p>
          </Empty>
        }
      >
        {(erasures) => (
          <Table
            caption="Erasures"
            columns={columns}
            rows={erasures}
            keyOf={({ erasure_id }) => erasure_id}
          />
        )}
      </Pages>
    </section>
  );
}
