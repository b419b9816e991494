import { expect, it } from 'vitest';
import { startBuiltServer } from '../support/built-server.ts';
import { runCommand } from '../support/run-command.ts';

const warning = 'RECEIPT_KEPT_DAYS is not a setting; did you mean RECEIPTS_KEPT_DAYS?';

it('a setting with a typo in its name causes a warning at start, and no other variable does', async () => {
  const server = await startBuiltServer({ RECEIPT_KEPT_DAYS: '60' });
  try {
    const lines = server.log.map((line): { level: number; msg: string } => JSON.parse(line));
    const told = lines.filter(({ level, msg }) => level >= 40 && msg.includes('is not a setting'));
    expect(told.map(({ msg }) => msg)).toEqual([warning]);
  } finally {
    await server.stop();
  }
});

it('if the settings are invalid, a typo among them is reported too', async () => {
  const { stderr } = await runCommand(['serve'], {
    DATABASE_URL: 'postgres://localhost/intake',
    TLS_CERTFILE: 'cert.pem',
    TLS_KEY_FILE: 'key.pem',
  });
  expect(stderr).toContain('TLS_CERT_FILE is missing');
  expect(stderr).toContain('TLS_CERTFILE is not a setting; did you mean TLS_CERT_FILE?');
});
