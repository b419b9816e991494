import type pg from 'pg';
import { expect } from 'vitest';
import type { Api } from './api.ts';

/**
 * Deletes two organisations. Maintenance has to start one removal and continue the other, which is already listed.
 */
export async function beginRemovals(admin: Api, owner: pg.Client): Promise<void> {
  for (const slug of ['globex', 'initech']) {
    const path = `/admin/v1/organisations/${slug}`;
    await admin.post('/admin/v1/organisations', { slug });
    await admin.post('/admin/v1/keys', { organisation: slug });
    for (const undone of [true, false]) {
      expect((await admin.send(path, { method: 'DELETE' })).status).toBe(200);
      if (undone) expect((await admin.post(`${path}/restore`, {})).status).toBe(200);
    }
  }
  await owner.query(
    `update organisations set deleted_at = now() - interval '31 days' where deleted_at is not null`,
  );
  await owner.query(`select begin_removal(organisation_id, 30) from organisations where slug = 'globex'`);
  await admin.get('/admin/v1/organisations');
}
