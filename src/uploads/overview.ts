import type { Pool } from '../postgres/pool.ts';
import { countsOf } from '../records/record-counts.ts';
import { uploadTypes } from '../registry/upload-types.ts';
import { listKinds } from '../rejections/rejection-kinds.ts';
import { settleOrganisation } from '../rejections/unsettled-batches.ts';

export interface Overview {
  readonly types: readonly {
    readonly type: string;
    readonly records: number;
    readonly newest_updated: string | null;
    readonly last_upload: string | null;
    readonly open_rejections: number;
  }[];
}

/** Reads counters that are updated whenever records are stored, instead of counting rows. */
export async function overviewOf(pool: Pool, organisationId: string): Promise<Overview> {
  await settleOrganisation(pool, organisationId);
  const counts = new Map((await countsOf(pool, organisationId)).map((count) => [count.type, count]));
  const rejections = new Map<string, number>();
  for (const { type, count } of await listKinds(pool, organisationId, {}))
    rejections.set(type, (rejections.get(type) ?? 0) + count);
  const types = uploadTypes.flatMap((type) => {
    const count = counts.get(type);
    if (!count && !rejections.has(type)) return [];
    return {
      type,
      records: Number(count?.records ?? 0),
      newest_updated: count?.newest_updated ?? null,
      last_upload: count?.last_upload ?? null,
      open_rejections: rejections.get(type) ?? 0,
    };
  });
  return { types };
}
