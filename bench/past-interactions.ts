import { randomUUIDv7 } from 'node:crypto';
import { interactionOf, sameForAll } from './interactions.ts';
import type { Tenant } from './tables.ts';

/** The number of shops and customers that the interactions refer to. */
export const pastItems = 5_000;

/** Returns the interaction for a row. There is one per minute, starting in 2020. */
export function pastInteraction(row: number) {
  return {
    ...interactionOf(1 + (row % pastItems), 1 + ((row * 7 + 3) % pastItems)),
    event_timestamp: new Date(Date.UTC(2020, 0, 1) + row * 61_000).toISOString(),
  };
}

export type PastInteraction = ReturnType<typeof pastInteraction>;

const fields = Object.keys({ ...sameForAll, user_id: '', student_id: '', item_id: '' });

/** The columns of a COPY line. */
export const copyColumns = ['organisation_id', 'interaction_id', ...fields, 'event_time'].join(', ');

export function copyLineOf({ organisationId }: Tenant, interaction: PastInteraction): string {
  const values = { ...interaction, event_timestamp: JSON.stringify(interaction.event_timestamp) };
  const inOrder = fields.map((field) => values[field as keyof PastInteraction]);
  return `${[organisationId, randomUUIDv7(), ...inOrder, interaction.event_timestamp].join('\t')}\n`;
}
