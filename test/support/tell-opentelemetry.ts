import { registerHooks } from 'node:module';

/** Preloaded into the service: says which modules of OpenTelemetry it loads, as lines of its log. */
registerHooks({
  load(url, context, nextLoad) {
    const [, name] = /\/node_modules\/(@opentelemetry\/[^/]+)/.exec(url) ?? [];
    if (name) process.stdout.write(`${JSON.stringify({ msg: `loads ${name}` })}\n`);
    return nextLoad(url, context);
  },
});
