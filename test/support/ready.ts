import { expect } from 'vitest';
import { apiOf } from './api.ts';

/** Waits until a process says that it is ready: one on a machine that stops for two seconds says for a moment that it is not. */
export async function expectReady(url: string): Promise<void> {
  await expect.poll(async () => (await apiOf(url).get('/health/ready')).status).toBe(200);
}
