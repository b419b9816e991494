// interactions/: records interactions, keeps those with missing references as rejections, and reads them back.

import { checkedEventTime, interaction } from '../registry/interaction.ts';
import { isoOf } from '../registry/times.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import type { StoredInteraction } from './interaction-rows.ts';

/** An interaction as the API shows it: its id, every field of the resource, when it happened and was received. */
export type InteractionAnswer = StoredInteraction & { readonly event_time: string; readonly created: string };

const fields = Object.keys(interaction);

export function interactionAnswer(stored: StoredInteraction): InteractionAnswer {
  const answer: Record<string, string | number | null> = { interaction_id: stored.interaction_id };
  for (const field of fields) answer[field] = stored[field] ?? null;
  // The column of this name is for queries; computed here, PostgreSQL need not write it as text for each row.
  answer.event_time = isoOf(checkedEventTime(stored.event_timestamp as string | number));
  // The time of receipt is in the id; a separate column could only disagree with it.
  answer.created = timeOfUuidV7(stored.interaction_id);
  return answer as InteractionAnswer;
}
