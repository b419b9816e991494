import { expect, it, onTestFinished } from 'vitest';
import { Connection } from '../../client/src/connection.ts';
import { json, startHostileServer } from '../../client/test/support/hostile-server.ts';
import { SentRows, sendRows } from '../src/screens/upload-file/rows/send-rows.ts';

const tooLarge = json(413, { code: 'body_too_large', message: 'too large' });

async function* rows() {
  yield [1, 2, 3, 4].map((line) => ({ line, cells: undefined, record: { item_type: 'SHOP' }, problems: [] }));
}

it('a step that is continued never splits a request that was sent before it stopped', async () => {
  let requests = 0;
  const stop = new AbortController();
  const server = await startHostileServer((outgoing, incoming) => {
    if (++requests > 1) return tooLarge(outgoing, incoming);
    // The answer is lost, and the user stops the upload.
    outgoing.socket?.destroy();
    stop.abort(new Error('stopped'));
  });
  onTestFinished(server.close);
  const connection = new Connection({ url: server.url, key: 'console' });
  const send = async (sent: SentRows, signal: AbortSignal) => {
    const step = {
      connection,
      type: 'interactions',
      key: 'step',
      mode: 'replace',
      dryRun: false,
      done: 0,
    } as const;
    for await (const _ of sendRows(rows(), { ...step, sent, signal })) expect.fail('a request was answered');
  };
  const sent = new SentRows();
  await expect(send(sent, stop.signal)).rejects.toThrow('stopped');
  const { signal } = new AbortController();
  await expect(send(new SentRows(sent), signal)).rejects.toMatchObject({
    code: 'body_too_large',
    outcome: 'unknown',
    idempotencyKeys: ['step-0'],
  });
  expect(requests).toBe(2);
  // A step that was never sent is split.
  await expect(send(new SentRows(), signal)).rejects.toThrow('a request was answered');
  expect(requests).toBe(2 + 7);
});
