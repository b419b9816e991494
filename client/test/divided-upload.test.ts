import { expect, it, onTestFinished } from 'vitest';
import { startBuiltServer } from '../../test/support/built-server.ts';
import { many, newTag } from '../../test/support/new-records.ts';
import { Intake, type RecordOf } from '../src/index.ts';

it('splits a request if the operator allows fewer records or bytes', async () => {
  const server = await startBuiltServer({ RECORDS_PER_REQUEST_MAX: '300', BODY_BYTES_MAX: '65536' });
  onTestFinished(() => server.stop());
  const intake = new Intake({ url: server.url, key: await server.createKey('client') });
  const tags: RecordOf['tags'][] = many(1_000, () => newTag());
  tags[900] = newTag({ name: 7 }) as never;
  tags[901] = newTag({ note: 'x'.repeat(70_000) });
  const { counts, failed } = await intake.upload('tags', tags).finish();
  expect(counts).toMatchObject({ received: 1_000, created: 998, failed: 2 });
  expect(failed).toMatchObject([
    { index: 900, record: tags[900], problems: [{ code: 'wrong_type' }] },
    { index: 901, record: tags[901], problems: [{ code: 'record_too_large' }] },
  ]);
});
