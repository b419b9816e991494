import { countOf, formatNumber } from '../../../format/format.ts';
import { Time } from '../../../format/time.tsx';
import { Badge } from '../../../parts/badge.tsx';
import { Empty } from '../../../parts/notices.tsx';
import { Table } from '../../../parts/table.tsx';
import type {
  ChoreState,
  ClusterNode,
  PartitionedTable,
  ProcessState,
  WaitingWork,
} from '../../api/types.ts';
import { choreStateOf, hasEnded, isLate, isMissing, isWithoutLeader, troubledFirst } from './judge-state.ts';

interface ProcessesProps {
  readonly processes: readonly ProcessState[];
  readonly nowMs: number;
}

export function Processes({ processes, nowMs }: ProcessesProps) {
  if (processes.length === 0)
    return (
      <Empty title="No process has reported yet.">
        <p>Each process reports every minute after it starts, and then appears here.</p>
      </Empty>
    );
  return (
    <Table
      caption="Processes"
      columns={[
        {
          title: 'Host',
          cell: ({ host, process_id }) => (
            <>
              {host}
              <div className="hint id">{process_id}</div>
            </>
          ),
        },
        {
          title: 'State',
          cell: (process) =>
            isMissing(process, nowMs) ? (
              <Badge tone="bad">Not reporting</Badge>
            ) : (
              <Badge tone="good">Running</Badge>
            ),
        },
        { title: 'Last seen', cell: ({ seen_at }) => <Time value={seen_at} /> },
        { title: 'Started', cell: ({ started_at }) => <Time value={started_at} /> },
        { title: 'Version', cell: ({ version }) => version },
        { title: 'Runs maintenance', cell: ({ is_leader }) => (is_leader ? 'yes' : 'no') },
      ]}
      rows={troubledFirst(processes, (process) => isMissing(process, nowMs))}
      keyOf={({ process_id }) => process_id}
    />
  );
}

export function NoLeader({ processes, nowMs }: ProcessesProps) {
  if (processes.length === 0 || !isWithoutLeader(processes, nowMs)) return null;
  return (
    <div className="notice notice-bad">
      <p className="notice-title">No process runs maintenance.</p>
      <p>
        Uploads still work, but old data stays and no partitions are created. See IntakeMaintenanceStuck in
        the runbook.
      </p>
    </div>
  );
}

export function Chores({ chores }: { readonly chores: readonly ChoreState[] }) {
  if (chores.length === 0)
    return (
      <Empty title="No chore has run yet.">
        <p>One process runs them soon after it starts. If this stays empty, read the log of that process.</p>
      </Empty>
    );
  const isFailing = (chore: ChoreState) => choreStateOf(chore).tone === 'bad';
  const [failing, others] = [chores.filter(isFailing), chores.filter((chore) => !isFailing(chore))];
  return (
    <>
      {failing.length > 0 && <ChoreTable caption="Failing chores" chores={failing} />}
      {others.length > 0 && (
        <details className="rest">
          <summary>{countOf(others.length, 'chore is', 'chores are')} in order</summary>
          <ChoreTable caption="Chores that are in order" chores={others} />
        </details>
      )}
    </>
  );
}

function ChoreTable({
  caption,
  chores,
}: {
  readonly caption: string;
  readonly chores: readonly ChoreState[];
}) {
  return (
    <Table
      caption={caption}
      columns={[
        { title: 'Chore', cell: ({ chore }) => chore },
        {
          title: 'State',
          cell: (chore) => {
            const { tone, text } = choreStateOf(chore);
            return <Badge tone={tone}>{text}</Badge>;
          },
        },
        { title: 'Last finished', cell: ({ ran_at }) => <Time value={ran_at} /> },
        { title: 'Last failed', cell: ({ failed_at }) => <Time value={failed_at} /> },
      ]}
      rows={chores}
      keyOf={({ chore }) => chore}
    />
  );
}

interface WaitingProps {
  readonly waiting: readonly WaitingWork[];
  readonly readMs: number;
}

export function Waiting({ waiting, readMs }: WaitingProps) {
  const rows = waiting
    .filter(({ count }) => count > 0)
    .toSorted((one, other) => other.oldest_seconds - one.oldest_seconds);
  if (rows.length === 0) return <p className="muted">Nothing is waiting.</p>;
  return (
    <Table
      caption="Waiting work"
      columns={[
        { title: 'Work', cell: ({ work }) => work },
        { title: 'Waiting', numeric: true, cell: ({ count }) => formatNumber(count) },
        {
          title: 'Oldest since',
          cell: ({ count, oldest_seconds }) => (
            <span>
              <Time value={new Date(readMs - oldest_seconds * 1_000).toISOString()} />{' '}
              {isLate({ count, oldest_seconds }) && <Badge tone="bad">Late</Badge>}
            </span>
          ),
        },
      ]}
      rows={rows}
      keyOf={({ work }) => work}
    />
  );
}

interface PartitionsProps {
  readonly tables: readonly PartitionedTable[];
  readonly nowMs: number;
}

export function Partitions({ tables, nowMs }: PartitionsProps) {
  return (
    <Table
      caption="Partitions"
      columns={[
        { title: 'Table', cell: ({ table }) => <code>{table}</code> },
        { title: 'Partitions', numeric: true, cell: ({ count }) => formatNumber(count) },
        {
          title: 'Last one ends',
          cell: ({ ends_at }) => (
            <span>
              <Time value={ends_at} />{' '}
              {hasEnded({ ends_at }, nowMs) && <Badge tone="bad">New rows have no partition</Badge>}
            </span>
          ),
        },
      ]}
      rows={tables}
      keyOf={({ table }) => table}
    />
  );
}

export function Nodes({ nodes }: { readonly nodes: readonly ClusterNode[] | null }) {
  if (nodes === null)
    return <p className="muted">The database is a single PostgreSQL server, not a cluster.</p>;
  return (
    <Table
      caption="Nodes of the cluster"
      columns={[
        { title: 'Node', cell: ({ name }) => name },
        { title: 'Port', cell: ({ port }) => String(port) },
        {
          title: 'State',
          cell: ({ is_active }) =>
            is_active ? <Badge tone="good">Active</Badge> : <Badge tone="bad">Inactive</Badge>,
        },
      ]}
      rows={nodes}
      keyOf={({ name, port }) => `${name}:${port}`}
    />
  );
}
