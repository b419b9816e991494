import type { Case } from './case.ts';
import { checkOnly } from './cases/check-only.ts';
import { interactions } from './cases/interactions.ts';
import { interactionsBesideUploads } from './cases/interactions-beside-uploads.ts';
import { interactionsOrganisations } from './cases/interactions-organisations.ts';
import { memory } from './cases/memory.ts';
import { tenMillion } from './cases/ten-million.ts';
import { types } from './cases/types.ts';
import { uploadAgain } from './cases/upload-again.ts';
import { uploadHalf } from './cases/upload-half.ts';
import { uploadNew } from './cases/upload-new.ts';

/** Every case, in the order in which they run and are reported. */
export const cases: readonly Case[] = [
  uploadNew,
  uploadAgain,
  uploadHalf,
  types,
  interactions,
  interactionsOrganisations,
  interactionsBesideUploads,
  tenMillion,
  memory,
  checkOnly,
];
