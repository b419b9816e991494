/** Aborted by Ctrl-C or SIGTERM; a second one ends the process at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => controller.abort(new DOMException('Interrupted.', 'AbortError')));
  }
  return controller.signal;
}
