/** Formats an action's details on one line, such as "label: nightly export; expires_at: none". */
export function describeDetails(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${textOf(value)}`)
    .join('; ');
}

function textOf(value: unknown): string {
  if (value === null) return 'none';
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
