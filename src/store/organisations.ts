import { randomUUIDv7 } from 'node:crypto';
import type { Pool } from './pool.ts';

export interface Organisation {
  readonly organisation_id: string;
  readonly slug: string;
  readonly name: string;
  readonly created_at: string;
}

/** Undefined if the slug is taken. */
export async function createOrganisation(
  pool: Pool,
  slug: string,
  name: string,
): Promise<Organisation | undefined> {
  const { rows } = await pool.query<Organisation>(
    `insert into organisations (organisation_id, slug, name) values ($1, $2, $3)
     on conflict (slug) do nothing returning organisation_id, slug, name, created_at`,
    [randomUUIDv7(), slug, name],
  );
  return rows[0];
}

export async function findOrganisation(pool: Pool, slug: string): Promise<Organisation | undefined> {
  const { rows } = await pool.query<Organisation>(
    'select organisation_id, slug, name, created_at from organisations where slug = $1',
    [slug],
  );
  return rows[0];
}

export async function listOrganisations(pool: Pool): Promise<Organisation[]> {
  const { rows } = await pool.query<Organisation>(
    'select organisation_id, slug, name, created_at from organisations order by slug',
  );
  return rows;
}
