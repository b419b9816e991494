import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { json, startHostileServer } from '../../client/test/support/hostile-server.ts';
import { describeFile, suggestSettings } from '../src/screens/upload-file/rows/describe-file.ts';
import { FileUpload } from '../src/screens/upload-file/rows/file-upload.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Sets the clocks ahead. The second one does not jump. */
function setClocks(aheadMs: number, aheadAtMs = aheadMs): void {
  vi.restoreAllMocks();
  const { timeOrigin } = performance;
  const nowMs = performance.now.bind(performance);
  vi.spyOn(Date, 'now').mockImplementation(() => timeOrigin + nowMs() + aheadMs);
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs() + aheadAtMs);
}

/** Starts to upload an interaction and stops when its answer is lost. */
async function interrupted(onSecond: () => void = () => {}) {
  let requests = 0;
  const server = await startHostileServer((outgoing, incoming) => {
    if (++requests > 2) return json(400, { code: 'invalid_request', message: 'wrong' })(outgoing, incoming);
    outgoing.socket?.destroy();
    if (requests === 1) upload.stop();
    else onSecond();
  });
  onTestFinished(server.close);
  vi.stubGlobal('location', { origin: server.url });
  const shopId = '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01';
  const text = `interaction_type,item_type,item_id,event_timestamp\nSHARE,SHOP,${shopId},1700000000\n`;
  const file = await describeFile(new File([text], 'interactions.csv'), undefined);
  const upload = new FileUpload(file, suggestSettings(file, 'interactions'));
  const problems = [{ column: 'item_type', code: 'invalid_value', message: 'is wrong' }];
  const cells = ['SHARE', 'TREE', shopId, '1700000000'];
  upload.state().failed.add({ line: 2, cells, record: undefined, problems });
  upload.correct(2, 'item_type', 'SHOP');
  setClocks(0);
  await upload.uploadCorrected();
  expect(upload.state()).toMatchObject({ canContinue: true, error: undefined });
  return { upload, requests: () => requests };
}

it('a step that is continued does not send interactions again after a day', async () => {
  // The computer sleeps for half an hour after the first attempt.
  const continuedMs = 23 * hourMs + 40 * minuteMs;
  const { upload, requests } = await interrupted(() => setClocks(continuedMs + hourMs / 2, continuedMs));
  setClocks(continuedMs);
  await upload.continue();
  expect(upload.state()).toMatchObject({ canContinue: true, error: { outcome: 'unknown' } });
  expect(requests()).toBe(2);
});

it.each([
  ['a day has passed', 24 * hourMs, 24 * hourMs],
  ['a day has passed, and the clock was set back by 3 hours', 21 * hourMs, 24 * hourMs],
  ['a day has passed, most of which the computer slept', 24 * hourMs, hourMs],
  ['the clock shows an earlier time than at the start', -2 * hourMs, hourMs],
])('a step is not continued if %s', async (_, aheadMs, aheadAtMs) => {
  const { upload, requests } = await interrupted();
  setClocks(aheadMs, aheadAtMs);
  await upload.continue();
  expect(upload.state().error).toMatchObject({ message: expect.stringContaining('interrupted a day ago') });
  expect(requests()).toBe(1);
});
