let token: string | undefined;

/** Removes the token in an operator's link from the URL before anything can store the URL. */
export function takeLinkToken(): void {
  const { pathname, search, hash } = location;
  if (!pathname.endsWith('/sign-in') || hash.length < 2) return;
  token = hash.slice(1);
  history.replaceState(history.state, '', pathname + search);
}

/** Returns the token, but only the first time, because the token can be exchanged only once. */
export function linkToken(): string | undefined {
  const taken = token;
  token = undefined;
  return taken;
}
