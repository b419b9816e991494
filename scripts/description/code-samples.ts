import type { JsonSchema, Operation } from '../../src/http/operation/operation.ts';

/**
 * Returns the samples shown next to an operation on the reference page. They replace the page's generated snippets, which
 * fill in every parameter, including `dry_run`, and use neither the command nor the library.
 */
export function codeSamplesOf({ id, path, requestBody }: Operation<never>): JsonSchema {
  const samples = [
    ...(requestBody ? [curl(path, requestBody.example)] : []),
    ...clientSamples(id, requestBody),
  ];
  return samples.length === 0 ? {} : { 'x-codeSamples': samples };
}

interface Sample {
  readonly lang: 'Shell' | 'JavaScript';
  readonly label: string;
  readonly source: string;
}

function curl(path: string, example: unknown): Sample {
  // A single quote can only occur inside a JSON string, where it would end the shell's quoting.
  const body = JSON.stringify(example, null, 2).replaceAll("'", "'\\''");
  const source = `curl -sS "$INTAKE_URL${path}" \\
  -H "Authorization: Bearer $INTAKE_KEY" -H 'Content-Type: application/json' \\
  -d '${body}'`;
  return { lang: 'Shell', label: 'curl', source };
}

function clientSamples(id: string, requestBody: Operation['requestBody']): Sample[] {
  const { records } = (requestBody?.example ?? {}) as { readonly records?: unknown };
  if (id === 'record-interaction')
    return [library(`console.log(await intake.record(${literalOf(requestBody?.example)}));`)];
  if (id === 'upload-interactions')
    return [library(uploading(records, "intake.interactions.upload(records, { name: 'history-1' })"))];
  if (id === 'list-changes')
    return [
      library(`for await (const { cursor, type, record } of intake.changes({ types: ['shops'] })) {
  if (type) console.log(type, record);
  // Keep the cursor: { after: cursor } continues here.
}`),
      command('intake changes --types shops'),
    ];
  if (id === 'report-recommendations') return [command('intake report --group-by item_type')];
  if (id === 'get-lake')
    return [library("console.log(await intake.lake.pull('lake'));"), command('intake pull lake')];
  const type = id.startsWith('upload-') && records ? id.slice('upload-'.length) : undefined;
  if (type === undefined) return [];
  return [
    library(uploading(records, `intake.upload('${type}', records)`)),
    command(`intake upload ${type}.csv`),
  ];
}

function uploading(records: unknown, upload: string): string {
  return `const records = ${literalOf(records)};
const { counts, failed } = await ${upload}.finish();
console.log(counts, failed);`;
}

/** Formats a value as JavaScript source, without quotes around property names. */
function literalOf(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(/^( *)"(\w+)":/gm, '$1$2:');
}

function library(rest: string): Sample {
  const source = `import { env } from 'node:process';
import { Intake } from 'intake-client';

const intake = new Intake({ url: env.INTAKE_URL, key: env.INTAKE_KEY });
${rest}`;
  return { lang: 'JavaScript', label: 'intake-client', source };
}

function command(source: string): Sample {
  return { lang: 'Shell', label: 'intake', source };
}
