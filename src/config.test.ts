import { expect, it } from 'vitest';
import { ConfigError, type Environment, readConfig } from './config.ts';
import { settings } from './settings.ts';

const awayUrl = 'postgres://intake:hush@127.0.0.1:1/intake';
const missingFile = '/nonexistent/tls.pem';

function problemsOf(env: Environment): string {
  try {
    readConfig(env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  return '';
}

const wrong: { what: string; env: Environment; named: RegExp[] }[] = [
  {
    what: 'a limit of records that no full upload could pass',
    env: { DATABASE_URL: awayUrl, RECORDS_PER_SECOND_MAX: '100' },
    named: [/RECORDS_PER_SECOND_MAX must be 2500 or more/],
  },
  {
    what: 'several at once, one of them missing',
    env: { PORT: '70000', HOST: '::', TLS_KEY_FILE: missingFile },
    named: [
      /DATABASE_URL is missing.*postgres:\/\//,
      /PORT .*65535/,
      /HOST .*TLS_CERT/,
      /TLS_CERT_FILE is missing/,
    ],
  },
  {
    what: 'an invalid database address',
    env: { DATABASE_URL: 'postgres://[hush' },
    named: [/DATABASE_URL .*postgres:\/\//],
  },
  {
    what: 'a certificate that does not exist',
    env: { DATABASE_URL: awayUrl, TLS_CERT_FILE: missingFile, TLS_KEY_FILE: missingFile },
    named: [/TLS_CERT_FILE/],
  },
  {
    what: 'a proxy that is not an IP address',
    env: { DATABASE_URL: awayUrl, TRUSTED_PROXY: 'somewhere' },
    named: [/TRUSTED_PROXY/],
  },
  {
    what: 'a lake with credentials in its address',
    env: { DATABASE_URL: awayUrl, LAKE_URL: 's3://key:hush@bucket/lake' },
    named: [/LAKE_URL .*file:\/\/\//],
  },
  {
    what: 'a lake with a misspelt parameter',
    env: { DATABASE_URL: awayUrl, LAKE_URL: 's3://bucket/lake?regoin=hush' },
    named: [/LAKE_URL .*regoin.*endpoint and region/],
  },
  {
    what: 'a lake with a parameter twice, an empty one, and an endpoint that is not an address',
    env: { DATABASE_URL: awayUrl, LAKE_URL: 's3://bucket/lake?region=&region=hush&endpoint=hush:9000' },
    named: [/LAKE_URL .*twice/, /LAKE_URL .*empty region/, /LAKE_URL .*endpoint such as https:\/\//],
  },
  {
    what: "a lake with credentials in its endpoint's address",
    env: { DATABASE_URL: awayUrl, LAKE_URL: 's3://bucket/lake?endpoint=https://key:hush@host' },
    named: [/LAKE_URL .*endpoint .*password.*AWS_SECRET_ACCESS_KEY/],
  },
  {
    what: "a lake's bucket with a port",
    env: { DATABASE_URL: awayUrl, LAKE_URL: 's3://hush:9000/lake' },
    named: [/LAKE_URL .*s3:\/\/bucket/],
  },
  {
    what: 'a lake in a folder with a parameter',
    env: { DATABASE_URL: awayUrl, LAKE_URL: 'file:///srv/lake?hush' },
    named: [/LAKE_URL .*folder has none/],
  },
  {
    what: 'a lake in a relative folder',
    env: { DATABASE_URL: awayUrl, LAKE_URL: './lake' },
    named: [/LAKE_URL .*file:\/\/\//],
  },
  {
    what: 'an invalid collector address and an unknown sampler',
    env: { DATABASE_URL: awayUrl, OTEL_EXPORTER_OTLP_ENDPOINT: 'somewhere', OTEL_TRACES_SAMPLER: 'ratio' },
    named: [/OTEL_EXPORTER_OTLP_ENDPOINT .*4318/, /OTEL_TRACES_SAMPLER must be one of .*traceidratio/],
  },
];

it.each(wrong)('$what: the message names each setting and the expected value', ({ env, named }) => {
  const problems = problemsOf(env);
  for (const line of named) expect(problems).toMatch(line);
  expect(problems, 'no password').not.toContain('hush');
});

const others = Object.values(settings).flatMap(([name]) => (name === 'DATABASE_URL' ? [] : [name]));
it.each(['', ' '])('every setting, and what nearly is one, counts as unset if it is %j', (empty) => {
  const unset = readConfig({ DATABASE_URL: awayUrl });
  for (const name of [...others, 'ADMIN_TOKEN', 'ERASURE_KEY'])
    expect(readConfig({ DATABASE_URL: awayUrl, [name]: empty }), name).toEqual(unset);
  expect(problemsOf({ DATABASE_URL: empty })).toMatch(/DATABASE_URL is missing/);
});

it('a setting that is empty leaves the fallback of dev in place', () => {
  const fallbacks = { LOG_LEVEL: 'warn', ERASURE_KEYS: 'k'.repeat(32) };
  const read = readConfig({ DATABASE_URL: awayUrl, LOG_LEVEL: '', ERASURE_KEYS: '' }, fallbacks);
  expect([read.logLevel, read.erasureKeys]).toEqual(['warn', ['k'.repeat(32)]]);
});

it('an erasure key that is too short is refused', () => {
  const tooShort = { DATABASE_URL: awayUrl, ERASURE_KEYS: `${'k'.repeat(32)},` };
  expect(problemsOf(tooShort)).toMatch(/ERASURE_KEYS .*openssl rand/);
});

it.each(['0.0.0.0', '::', '192.0.2.1'])('39: listening on %s without encryption is refused', (HOST) => {
  const behind = { DATABASE_URL: awayUrl, HOST };
  expect(problemsOf(behind)).toMatch(/HOST .*TLS_CERT_FILE.*TLS_KEY_FILE.*TRUSTED_PROXY/);
  expect(problemsOf({ ...behind, TRUSTED_PROXY: '127.0.0.1' })).toBe('');
});
