const storageKey = 'intake-operator-service-address';

/** The origin of an address that was typed; empty if it has none. */
export function originOf(address: string): string {
  const text = address.trim();
  return URL.canParse(text) && /^https?:/.test(text) ? new URL(text).origin : '';
}

/** The admin port does not know where organisations reach the service, so the browser keeps what was typed. */
export function keptServiceAddress(): string {
  try {
    return originOf(localStorage.getItem(storageKey) ?? '');
  } catch {
    return ''; // Storage may be forbidden.
  }
}

export function keepServiceAddress(address: string): void {
  try {
    if (address === '') localStorage.removeItem(storageKey);
    else localStorage.setItem(storageKey, address);
  } catch {
    // It is then typed again next time.
  }
}
