export type Tone = 'good' | 'warn' | 'bad' | 'plain';

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return <span className={`badge badge-${tone}`}>{children}</span>;
}

const outcomes: Readonly<Record<number, readonly [Tone, string]>> = {
  200: ['good', 'Complete'],
  207: ['warn', 'Partial'],
  400: ['bad', 'Failed'],
  500: ['bad', 'Not stored'],
};

/** Shows an upload's or a batch's outcome, which is derived from its status. */
export function Outcome({
  status,
  complete = true,
}: {
  readonly status: number;
  readonly complete?: boolean;
}) {
  if (!complete) return <Badge tone="warn">Batches missing</Badge>;
  const [tone, text] = outcomes[status] ?? ['plain', String(status)];
  return <Badge tone={tone}>{text}</Badge>;
}
