// interactions/: records interactions, keeps them as rejections if a reference is missing, and reads them back.

import { checkedEventTime, interaction } from '../registry/interaction.ts';
import { isoOf } from '../registry/times.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import type { StoredInteraction } from './interaction-rows.ts';

export type InteractionAnswer = StoredInteraction & { readonly event_time: string; readonly created: string };

const fields = Object.keys(interaction);

export function interactionAnswer(stored: StoredInteraction): InteractionAnswer {
  const answer: Record<string, string | number | null> = { interaction_id: stored.interaction_id };
  for (const field of fields) answer[field] = stored[field] ?? null;
  // Not the column with this name, because PostgreSQL would have to format it for each row.
  answer.event_time = isoOf(checkedEventTime(stored.event_timestamp as string | number));
  // A separate column could only contradict the time in the id.
  answer.created = timeOfUuidV7(stored.interaction_id);
  return answer as InteractionAnswer;
}
