// interactions/: records interactions, keeps them as rejections if a reference is missing, and reads them back.

import { checkedEventTime, interaction } from '../registry/interaction.ts';
import { isoOf } from '../registry/times.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import type { StoredInteraction } from './interaction-rows.ts';

/**
 * An interaction as the API returns it. It has an id, every field of the resource, and the times at which it happened
 * and was received.
 */
export type InteractionAnswer = StoredInteraction & { readonly event_time: string; readonly created: string };

const fields = Object.keys(interaction);

export function interactionAnswer(stored: StoredInteraction): InteractionAnswer {
  const answer: Record<string, string | number | null> = { interaction_id: stored.interaction_id };
  for (const field of fields) answer[field] = stored[field] ?? null;
  // The column with this name is only used in queries. Computing the value here saves PostgreSQL from formatting it for
  // each row.
  answer.event_time = isoOf(checkedEventTime(stored.event_timestamp as string | number));
  // The id already contains the time of receipt. A separate column could only contradict it.
  answer.created = timeOfUuidV7(stored.interaction_id);
  return answer as InteractionAnswer;
}
