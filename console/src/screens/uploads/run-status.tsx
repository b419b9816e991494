import type { RunSummary } from '../../api/types.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';

const statuses: Readonly<Record<RunSummary['status'], readonly [Tone, string]>> = {
  running: ['plain', 'Running'],
  interrupted: ['warn', 'Interrupted'],
  finished: ['good', 'Finished'],
  failed: ['bad', 'Failed'],
};

export function RunStatus({ status }: Pick<RunSummary, 'status'>) {
  const [tone, text] = statuses[status] ?? ['plain', status];
  return <Badge tone={tone}>{text}</Badge>;
}
