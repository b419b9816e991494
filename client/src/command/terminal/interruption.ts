/** Returns a signal that Ctrl-C or SIGTERM aborts. A second Ctrl-C or SIGTERM ends the process immediately. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => controller.abort(new DOMException('Interrupted.', 'AbortError')));
  }
  return controller.signal;
}
