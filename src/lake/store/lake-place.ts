import { randomUUID } from 'node:crypto';
import type { Pool } from '../../postgres/pool.ts';
import { inTransaction } from '../../postgres/transactions.ts';
import { isUuid } from '../../registry/fields.ts';
import { organisationsWithLake } from '../lake-progress.ts';
import { lakeLimits } from '../limits.ts';
import type { LakeStore } from './lake-store.ts';

/** Thrown if the files at LAKE_URL are not those of this database. The message states what to do. */
export class WrongPlace extends Error {}

/** Confirms taking over a place without a marker. */
export const emptyPlace = 'empty';

/** Organisations' folders are named after their ids, so none has this name. */
const folder = '_place';
const nameForm = /^_place\/(\d{6})\.json$/;

interface Marker {
  readonly database: string;
  /** Identifies the database together with its server, so that a copy has another one. */
  readonly fingerprint: string;
  readonly claim: string;
}

interface TakenOver {
  readonly isCopied: boolean;
  readonly left: string | null;
  readonly unknown: readonly string[];
}

interface Own {
  readonly database: string;
  readonly fingerprint: string;
  readonly claim: string | null;
  readonly url: string | null;
}

/**
 * The place where the lake's files are. Its newest marker names the database that they belong to. Two databases that wrote
 * to the same place would delete each other's files. Markers are created and never replaced, so of several processes that
 * claim a place at the same time, exactly one succeeds.
 */
export class LakePlace {
  readonly #pool: Pool;
  readonly #store: LakeStore;
  readonly #url: string;
  #checkedMs = Number.NEGATIVE_INFINITY;
  #isProbed = false;

  constructor(pool: Pool, store: LakeStore, url: string) {
    this.#pool = pool;
    this.#store = store;
    this.#url = url;
  }

  /** Throws if the place belongs to another database, or if this database's files are elsewhere. */
  async check(): Promise<void> {
    this.#compare(await this.#newestMarker(), await this.#own());
    this.#checkedMs = performance.now();
  }

  /**
   * Like `check`, but also claims a place without a marker if this database has no other place. The first call checks that
   * the store is safe to write to.
   */
  async claim(): Promise<void> {
    let found = await this.#newestMarker();
    const own = await this.#own();
    this.#compare(found, own);
    if (!found && !(await this.#hasFiles()))
      throw new WrongPlace(this.#missing(own, 'its files are missing there'));
    // The probe writes a file, so the place must not be another database's.
    if (!this.#isProbed) await this.#store.probe();
    this.#isProbed = true;
    if (!found) {
      await this.#create(1, own);
      // Another process, perhaps of another database, may have been faster.
      found = await this.#newestMarker();
      if (!found) throw new Error('the marker that was just created in the lake is missing');
      this.#compare(found, own);
    }
    if (own.claim === null || own.url !== this.#url)
      await this.#pool.query(
        'update lake_place set claim = $1, fingerprint = $2, url = $3 where claim is null or claim = $1',
        [found.claim, found.fingerprint, this.#url],
      );
    this.#checkedMs = performance.now();
  }

  get isChecked(): boolean {
    return performance.now() - this.#checkedMs < lakeLimits.placeCheckedMs;
  }

  /**
   * Makes the place this database's own. `confirmed` is the fingerprint of the database that it belongs to, or `empty`.
   * Unless it already is this database's own, the files there are deleted, and everything is copied again. Returns whether
   * that happens, the previous place, and the organisations whose files stay.
   */
  async takeOver(confirmed: string): Promise<TakenOver> {
    const found = await this.#newestMarker();
    const named = found?.fingerprint ?? emptyPlace;
    if (confirmed !== named)
      throw new WrongPlace(
        found
          ? `${this.#url} belongs to database ${nameOf(found)}; to take it over, run intake-server lake --take-over ${named}`
          : `${this.#url} has no marker, so it belongs to no database; to take it over, run intake-server lake --take-over ${named}`,
      );
    const own = await this.#own();
    const unknown = await this.#unknownFolders();
    const claim = await this.#create((found?.number ?? 0) + 1, own);
    if (claim === undefined)
      throw new WrongPlace(
        `another process has just taken over ${this.#url}; check which one, and try again`,
      );
    // A copied database has the original's claim, and on the same server also the epochs and numbers of its changes, but not
    // what the original has written to the lake since then.
    const isCopied =
      found === undefined || found.claim !== own.claim || found.fingerprint !== own.fingerprint;
    await inTransaction(this.#pool, async (client) => {
      await client.query('update lake_place set claim = $1, fingerprint = $2, url = $3', [
        claim,
        own.fingerprint,
        this.#url,
      ]);
      if (isCopied)
        await client.query('update lake_progress set removing_since = now() where removing_since is null');
    });
    return { isCopied, left: own.url !== null && own.url !== this.#url ? own.url : null, unknown };
  }

  #compare(found: Marker | undefined, own: Own): void {
    const lake = `LAKE_URL ${this.#url}`;
    if (!found) {
      if (own.claim !== null) throw new WrongPlace(this.#missing(own, 'its marker is missing there'));
      return;
    }
    if (found.fingerprint !== own.fingerprint)
      throw new WrongPlace(
        `${lake} has the lakes of database ${nameOf(found)}, but DATABASE_URL is database ${nameOf(own)}. ` +
          'A database that was copied, restored, or moved or upgraded to a new server has a new id. If this database ' +
          'replaces the other one, stop the processes of the other one and run intake-server lake --take-over ' +
          `${found.fingerprint}. Otherwise set LAKE_URL to another place`,
      );
    if (own.claim !== null && found.claim !== own.claim)
      throw new WrongPlace(
        `${lake} is a former place of the lakes of database ${nameOf(own)}, which are at ${own.url}. Set LAKE_URL to ` +
          `${own.url}, for serve and lake alike. To move back and copy everything again, run intake-server lake ` +
          `--take-over ${found.fingerprint}`,
      );
  }

  #missing(own: Own, what: string): string {
    const place = own.url === null ? '' : ` They are at ${own.url}.`;
    return (
      `LAKE_URL ${this.#url} is not the place of the lakes of database ${nameOf(own)}: ${what}.${place} If a folder is ` +
      'not mounted, mount it. If serve and lake have different values, correct one. To copy everything to this place, run ' +
      `intake-server lake --take-over ${emptyPlace}`
    );
  }

  async #newestMarker(): Promise<(Marker & { readonly number: number }) | undefined> {
    let newest: { path: string; number: number } | undefined;
    for await (const { path } of this.#store.list(folder)) {
      const number = Number(nameForm.exec(path)?.[1] ?? 0);
      if (number > (newest?.number ?? 0)) newest = { path, number };
    }
    const text = newest && (await this.#store.read(newest.path))?.toString();
    if (!newest || text === undefined) return undefined;
    try {
      const { database, fingerprint, claim } = JSON.parse(text) as Record<string, unknown>;
      return {
        number: newest.number,
        database: String(database),
        fingerprint: String(fingerprint),
        claim: String(claim),
      };
    } catch {
      throw new WrongPlace(`${newest.path} in LAKE_URL ${this.#url} is damaged; restore it from a backup`);
    }
  }

  /** Returns undefined if another process has created a marker with this number. */
  async #create(number: number, { database, fingerprint }: Own): Promise<string | undefined> {
    const claim = randomUUID();
    const marker: Marker = { database, fingerprint, claim };
    const path = `${folder}/${String(number).padStart(6, '0')}.json`;
    return (await this.#store.create(path, Buffer.from(`${JSON.stringify(marker)}\n`))) ? claim : undefined;
  }

  async #own(): Promise<Own> {
    const { rows } = await this.#pool.query<Own>(
      `select d.datname as database, p.claim, p.url, left(encode(
         sha256(convert_to(concat_ws(' ', p.database_id, s.system_identifier, d.oid), 'UTF8')), 'hex'), 12) as fingerprint
       from lake_place p, pg_control_system() s, pg_database d where d.datname = current_database()`,
    );
    const [own] = rows;
    if (!own) throw new Error('the table lake_place is empty');
    return own;
  }

  /**
   * Returns the folders of organisations that have no lake in this database. They are not deleted, because they may be
   * all that is left of an organisation that was created after the backup from which this database was restored.
   */
  async #unknownFolders(): Promise<string[]> {
    const ids = (await this.#store.folders()).filter(isUuid);
    const { rows } = await this.#pool.query<{ organisation_id: string }>(
      'select organisation_id from lake_progress where organisation_id = any ($1::uuid[])',
      [ids],
    );
    const begun = rows.map(({ organisation_id }) => organisation_id);
    const known = new Set([...begun, ...(await organisationsWithLake(this.#pool))]);
    return ids.filter((id) => !known.has(id));
  }

  /** Also true if there are no files to expect. */
  async #hasFiles(): Promise<boolean> {
    const { rows } = await this.#pool.query<{ organisation_id: string }>(
      `select organisation_id from lake_progress where positions <> '{}' and removing_since is null
       order by organisation_id limit 10`,
    );
    for (const { organisation_id } of rows)
      for await (const _ of this.#store.list(organisation_id)) return true;
    return rows.length === 0;
  }
}

function nameOf({ database, fingerprint }: Pick<Marker, 'database' | 'fingerprint'>): string {
  return `"${database}" (${fingerprint})`;
}
