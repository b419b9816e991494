import { expect } from 'vitest';
import { apiOf } from './api.ts';

/** Waits until a process is ready. If the machine stalls for two seconds, the process is briefly not ready. */
export async function expectReady(url: string): Promise<void> {
  await expect.poll(async () => (await apiOf(url).get('/health/ready')).status).toBe(200);
}
