import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { recordInteraction } from '../../src/http/routes/interactions.ts';
import type { NewInteraction } from '../../src/interactions/interaction-rows.ts';
import { InteractionWriter } from '../../src/interactions/interaction-writer.ts';
import { KnownReferences } from '../../src/interactions/known-ids.ts';
import { NodePools } from '../../src/postgres/cluster/node-pools.ts';
import type { OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

/** Tests an item that is stored after the writer failed to find it, but before the interaction is retried alone. */

let test: TestApp;
let organisationId: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ organisationId } = await test.organisation('acme'));
});
afterAll(() => test.close());

class LateItem extends InteractionWriter {
  readonly #storeItem: () => Promise<unknown>;
  isWritten: boolean | undefined;

  constructor(pool: OwnPool, storeItem: () => Promise<unknown>) {
    super(new NodePools(pool), new KnownReferences(new Suppressions([])));
    this.#storeItem = storeItem;
  }

  override async write(added: NewInteraction): Promise<boolean> {
    this.isWritten = await super.write(added);
    await this.#storeItem();
    return this.isWritten;
  }
}

it('an interaction whose item is stored at that moment is recorded', async () => {
  const item_id = randomUUID();
  const writer = new LateItem(test.pool, () =>
    test.pool.query(
      'insert into tags (organisation_id, tag_id, name, is_deleted) values ($1, $2, $3, false)',
      [organisationId, item_id, 'late'],
    ),
  );
  const body = { interaction_type: 'SHARE', item_type: 'TAG', item_id, event_timestamp: 1_700_000_000 };
  const { interaction } = await recordInteraction(
    { pool: test.pool, writer },
    {
      organisationId,
      requestId: randomUUID(),
      body: Buffer.from(JSON.stringify(body)),
      idempotencyKey: undefined,
    },
  );
  expect(interaction).toMatchObject({ item_id });
  expect(writer.isWritten).toBe(false);
});
