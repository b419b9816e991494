import type { ReceiptSummary } from '../../api/types.ts';
import { typeName } from '../../format/format.ts';
import { Outcome } from '../../parts/badge.tsx';
import { type Column, Count } from '../../parts/table.tsx';

/** The columns that show an upload's outcome. Both consoles use them. */
export const receiptColumns: readonly Column<ReceiptSummary>[] = [
  { title: 'Type', cell: (receipt) => <WhatItWas {...receipt} /> },
  { title: 'Outcome', cell: ({ status, complete }) => <Outcome status={status} complete={complete} /> },
  { title: 'Records', numeric: true, cell: ({ counts }) => <Count value={counts.received} /> },
  { title: 'Created', numeric: true, cell: ({ counts }) => <Count value={counts.created} /> },
  { title: 'Updated', numeric: true, cell: ({ counts }) => <Count value={counts.updated} /> },
  {
    title: 'Unchanged',
    numeric: true,
    cell: ({ counts }) => <Count value={counts.unchanged + counts.stale} />,
  },
  { title: 'Failed', numeric: true, cell: ({ counts }) => <Count value={counts.failed} bad /> },
];

function WhatItWas({ operation, type }: Pick<ReceiptSummary, 'operation' | 'type'>) {
  const name = type === null ? 'Several types' : typeName(type);
  return operation === 'replay' ? `${name} (replay)` : name;
}

export const outcomeChoices = [
  { value: '200', text: 'Complete' },
  { value: '207', text: 'Partial' },
  { value: '400', text: 'Failed' },
];
