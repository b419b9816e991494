import type { Tone } from '../../../parts/badge.tsx';
import type { Key } from '../../api/types.ts';

/** A key that expires within this time is marked, so that somebody rotates it before then. */
const soonMs = 7 * 86_400_000;

export interface KeyState {
  readonly tone: Tone;
  readonly text: string;
  /** Whether requests with this key are accepted. */
  readonly inUse: boolean;
}

export function keyStateOf(
  { revoked_at, expires_at }: Pick<Key, 'revoked_at' | 'expires_at'>,
  nowMs: number,
): KeyState {
  if (revoked_at !== null) return { tone: 'bad', text: 'Revoked', inUse: false };
  if (expires_at === null) return { tone: 'good', text: 'Active', inUse: true };
  const leftMs = Date.parse(expires_at) - nowMs;
  if (leftMs <= 0) return { tone: 'plain', text: 'Expired', inUse: false };
  return leftMs < soonMs
    ? { tone: 'warn', text: 'Expires soon', inUse: true }
    : { tone: 'good', text: 'Active', inUse: true };
}

/** Sorts keys that are in use first, then newest first, because the service sorts keys by their random ids. */
export function usefulFirst(keys: readonly Key[], nowMs: number): Key[] {
  const rank = (key: Key) => (keyStateOf(key, nowMs).inUse ? 0 : 1);
  return keys.toSorted(
    (one, other) => rank(one) - rank(other) || (one.created_at < other.created_at ? 1 : -1),
  );
}
