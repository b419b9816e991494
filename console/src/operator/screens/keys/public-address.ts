const storageKey = 'intake-operator-service-address';

/** Returns the origin of the address that the user typed, or an empty string if it has none. */
export function originOf(address: string): string {
  const text = address.trim();
  return URL.canParse(text) && /^https?:/.test(text) ? new URL(text).origin : '';
}

/**
 * Returns the service's public address. The admin API does not return this address, so the browser remembers the one that
 * the operator typed.
 */
export function keptServiceAddress(): string {
  try {
    return originOf(localStorage.getItem(storageKey) ?? '');
  } catch {
    return ''; // Storage may be blocked.
  }
}

export function keepServiceAddress(address: string): void {
  try {
    if (address === '') localStorage.removeItem(storageKey);
    else localStorage.setItem(storageKey, address);
  } catch {
    // Without storage, the operator has to type the address again.
  }
}
