import { accessRequests } from './access.ts';
import { badInput } from './bad-input.ts';
import type { ClientKind } from './client.ts';
import { pullCommands, uploadCommands } from './commands.ts';
import { endOfLife } from './end-of-life.ts';
import { erasures } from './erasures.ts';
import { exports } from './exports.ts';
import { followers } from './followers.ts';
import { interactions, keyedInteractions } from './interactions.ts';
import { merges } from './merges.ts';
import { keyOperators, neighbours } from './operators.ts';
import { browsers, interactionBatches, replays } from './replays.ts';
import { runs } from './runs.ts';

/** Every kind of client. A new capability adds one. */
export const clientKinds: readonly ClientKind[] = [
  exports,
  merges,
  runs,
  interactions,
  keyedInteractions,
  interactionBatches,
  browsers,
  // A copy equals the database only when the erasures are swept, so those are checked first.
  erasures,
  followers,
  replays,
  keyOperators,
  neighbours,
  accessRequests,
  badInput,
  endOfLife,
  uploadCommands,
  pullCommands,
];
