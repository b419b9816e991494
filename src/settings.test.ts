import { expect, it } from 'vitest';
import { formerSettingsIn, misspeltSettings } from './settings.ts';

it.each([
  ['RECEIPT_KEPT_DAYS', 'RECEIPTS_KEPT_DAYS'],
  ['records_per_request_max', 'RECORDS_PER_REQUEST_MAX'],
  ['DATABASE_CONNECTION_MAX', 'DATABASE_CONNECTIONS_MAX'],
  ['TLS_CERTFILE', 'TLS_CERT_FILE'],
  ['TLS_KEY', 'TLS_KEY_FILE'],
  ['TLS_CERT_PATH', 'TLS_CERT_FILE'],
  ['STOP_TIMEOUT', 'STOP_TIMEOUT_MS'],
  ['STOP_TIMEOUT_SECONDS', 'STOP_TIMEOUT_MS'],
  ['RECEIPTS_RETENTION_DAYS', 'RECEIPTS_KEPT_DAYS'],
  ['RECORDS_PER_SECOND', 'RECORDS_PER_SECOND_MAX'],
  ['RECORDS_MAX', 'RECORDS_PER_SECOND_MAX'],
  ['ADMIN_DATABASE_URI', 'ADMIN_DATABASE_URL'],
  ['ADMIN_DATABASE_URI', 'ADMIN_DATABASE_URL'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['REDIS_URI', 'REDIS_URL'],
  ['TRUSTED_PROXYS', 'TRUSTED_PROXY'],
  ['receipts_kept_days', 'RECEIPTS_KEPT_DAYS'],
])('%s is warned of', (name, meant) => {
  expect(misspeltSettings({ [name]: '60' })).toEqual([`${name} is not a setting; did you mean ${meant}?`]);
});

it.each(['ADMIN_TOKEN', 'COURSES_PER_REQUEST_MAX', 'LOG_INTERACTIONS_ONE_IN'])(
  '%s, which is no longer a setting, is named if it is still set',
  (name) => {
    expect(formerSettingsIn({ [name]: '60' })).toEqual([
      expect.stringMatching(`^${name} is no longer a setting and is ignored: `),
    ]);
    expect(misspeltSettings({ [name]: '60' })).toEqual([]);
    expect(formerSettingsIn({ [name]: '' })).toEqual([]);
  },
);

it('there is no warning for a variable with the same value as the setting it resembles', () => {
  const url = 'redis://localhost:6379';
  expect(misspeltSettings({ REDIS_URI: url, REDIS_URL: url })).toEqual([]);
  expect(misspeltSettings({ REDIS_URI: url, REDIS_URL: 'redis://localhost:6380' })).toHaveLength(1);
});

it('there are no warnings for usual variables of shells, platforms and other programs', () => {
  const usual = `
    HOME HOSTNAME HOSTTYPE HOST HOSTS HOST_IP HOST_NAME PORT PORTS PORT0 PORT_8080 LOGNAME MAIL PATH POST SHELL SHLVL TERM USER
    LOG_DIR LOG_FILE LOG_FORMAT TLS_CA_FILE SSL_CERT_FILE SSL_CERT_DIR SSL_KEY_FILE NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE
    REQUEST_ID REQUEST_METHOD CONNECTION_STRING TRUSTED_HOSTS API_KEY API_URL API_HOST API_TOKEN ADMIN_EMAIL ADMIN_PASSWORD
    ADMIN_USER PGHOST PGPORT PGUSER PGDATABASE PGPASSWORD PGSSLMODE PGCONNECT_TIMEOUT
    DATABASE_URL DATABASE_URI DATABASE_HOST DATABASE_PORT DATABASE_NAME DATABASE_USER DATABASE_USERNAME DATABASE_PASSWORD
    DATABASE_DSN DATABASE_CA_CERT DATABASE_PRIVATE_URL DATABASE_PUBLIC_URL DATABASE_URL_UNPOOLED DATABASE_CONNECTION_POOL_URL
    DATABASE_POOL_SIZE HEROKU_POSTGRESQL_AMBER_URL POSTGRES_URL POSTGRES_USER TEST_DATABASE_URL
    REDIS_HOST REDIS_PORT REDIS_PASSWORD REDIS_TLS_URL REDIS_PRIVATE_URL REDIS_SERVICE_HOST REDIS_PORT_6379_TCP_ADDR
    RECORDS_SERVICE_HOST RECORDS_SERVICE_PORT RECORDS_SERVICE_PORT_HTTP RECORDS_PORT RECORDS_PORT_8080_TCP ADMIN_PORT_8081_TCP
    ADMIN_SERVICE_HOST KUBERNETES_SERVICE_HOST KUBERNETES_PORT INVOCATION_ID JOURNAL_STREAM NOTIFY_SOCKET LISTEN_FDS CI TZ LANG
    npm_config_cache npm_package_name npm_lifecycle_event http_proxy HTTPS_PROXY NO_PROXY NODE_OPTIONS NODE_ENV`;
  const env = Object.fromEntries(
    usual
      .trim()
      .split(/\s+/)
      .map((name) => [name, '1']),
  );
  expect(misspeltSettings(env)).toEqual([]);
});
