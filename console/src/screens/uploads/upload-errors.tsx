import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { rejectionGroupsQuery } from '../../api/rejections.ts';
import type { Receipt } from '../../api/types.ts';
import { countOf, formatNumber, inConsoleWords } from '../../format/format.ts';
import { Table } from '../../parts/table.tsx';
import { type ErrorGroup, groupErrors } from './group-errors.ts';

const recordsShown = 50;

/** Shows the failures, grouped by field and reason. */
export function UploadErrors({ receipt }: { readonly receipt: Receipt }) {
  const groups = useMemo(() => groupErrors(receipt.batches), [receipt]);
  if (groups.length === 0) return null;
  return (
    <section className="card">
      <h2>Errors</h2>
      <p className="hint">By field and reason. A record with several invalid fields counts in each group.</p>
      {groups.map((group) => (
        <Group key={`${group.type} ${group.field} ${group.code}`} group={group} />
      ))}
      <OpenRejections requestId={receipt.request_id} />
    </section>
  );
}

function Group({ group: { field, code, message, records } }: { readonly group: ErrorGroup }) {
  const shown = records.slice(0, recordsShown);
  return (
    <details className="group">
      <summary>
        <span className="group-title">
          <code>{field ?? 'record'}</code> {code}
        </span>
        <span className="group-count">{countOf(records.length, 'record')}</span>
        <span className="group-text">{inConsoleWords(message)}</span>
      </summary>
      <Table
        caption={`Records with ${code} in ${field ?? 'the record'}`}
        columns={[
          { title: 'Index', numeric: true, cell: ({ index }) => formatNumber(index) },
          { title: 'Id', cell: ({ id }) => <code className="id">{id ?? 'not a UUID'}</code> },
          { title: 'Reason', cell: (record) => inConsoleWords(record.message) },
        ]}
        rows={shown}
        keyOf={({ index, message: reason }) => `${index} ${reason}`}
      />
      {shown.length < records.length && (
        <p className="hint">The first {formatNumber(shown.length)}. The receipt below lists all of them.</p>
      )}
    </details>
  );
}

/**
 * Links to the upload's rejections. They disappear when they are replayed or discarded, so an upload may have fewer
 * rejections than errors.
 */
function OpenRejections({ requestId }: { readonly requestId: string }) {
  const open = useQuery(rejectionGroupsQuery({ request_id: requestId }));
  if (open.data === undefined) return null;
  if (open.data.rejections.length === 0)
    return <p className="hint">None of these records is still an open rejection.</p>;
  return (
    <p>
      <Link to="/rejections" search={{ request_id: requestId }}>
        Correct, replay or discard what is still open
      </Link>
    </p>
  );
}
