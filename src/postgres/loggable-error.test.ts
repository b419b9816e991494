import pg from 'pg';
import { expect, it } from 'vitest';
import { serializeError } from './loggable-error.ts';

it('a restored database is logged in words, without the message of PostgreSQL', () => {
  const error = Object.assign(new pg.DatabaseError('quotes a value', 1, 'error'), { code: 'IN001' });
  const { message } = serializeError(error);
  expect(message).toMatch(
    /^SQLSTATE IN001: .*run intake-server after-restore .* ledger .*--without-erasures$/,
  );
});
