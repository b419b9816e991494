import { registerHooks } from 'node:module';

/** A module preloaded into the service, which logs the OpenTelemetry modules that the service loads. */
registerHooks({
  load(url, context, nextLoad) {
    const [, name] = /\/node_modules\/(@opentelemetry\/[^/]+)/.exec(url) ?? [];
    if (name) process.stdout.write(`${JSON.stringify({ msg: `loads ${name}` })}\n`);
    return nextLoad(url, context);
  },
});
