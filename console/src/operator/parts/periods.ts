/** The periods that the user can choose, with the same names as the command options. */
const seconds: Readonly<Record<string, number>> = {
  '0s': 0,
  '1h': 3_600,
  '8h': 28_800,
  '1d': 86_400,
  '7d': 604_800,
  '30d': 2_592_000,
};

const texts: Readonly<Record<string, string>> = {
  '0s': '0 seconds: it stops immediately',
  '1h': '1 hour',
  '8h': '8 hours',
  '1d': '1 day',
  '7d': '7 days',
  '30d': '30 days',
};

export function periodChoices(...periods: readonly string[]) {
  return periods.map((value) => ({ value, text: texts[value] ?? value }));
}

export function secondsOf(period: string): number {
  return seconds[period] ?? 0;
}

export function periodFromNow(period: string): string {
  return new Date(Date.now() + secondsOf(period) * 1_000).toISOString();
}

/** Returns the time until an instant in whole days, as a command option. */
export function daysUntil(iso: string, nowMs: number): string {
  return `${Math.max(1, Math.ceil((Date.parse(iso) - nowMs) / 86_400_000))}d`;
}
