import { formatTime } from './format.ts';

/** Shows a time in the reader's time zone, with the UTC time in the tooltip. */
export function Time({
  value,
  absent = 'never',
}: {
  readonly value: string | null;
  readonly absent?: string;
}) {
  if (value === null) return <span className="muted">{absent}</span>;
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) return value;
  return (
    <time dateTime={value} title={time.toISOString().replace('T', ' ').replace('Z', ' UTC')}>
      {formatTime(value)}
    </time>
  );
}
