let token: string | undefined;

/** Takes the token of an operator's link out of the address, before anything can keep that address. */
export function takeLinkToken(): void {
  const { pathname, search, hash } = location;
  if (!pathname.endsWith('/sign-in') || hash.length < 2) return;
  token = hash.slice(1);
  history.replaceState(history.state, '', pathname + search);
}

/** The token, once: it can be exchanged only once. */
export function linkToken(): string | undefined {
  const taken = token;
  token = undefined;
  return taken;
}
