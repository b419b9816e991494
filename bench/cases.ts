import type { Case } from './case.ts';
import { checkOnly } from './cases/check-only.ts';
import { citus } from './cases/citus.ts';
import { compare } from './cases/compare.ts';
import { costs } from './cases/costs.ts';
import { feed } from './cases/feed.ts';
import { interactions } from './cases/interactions.ts';
import { interactionsBesideUploads } from './cases/interactions-beside-uploads.ts';
import { interactionsCsv } from './cases/interactions-csv.ts';
import { interactionsHistory } from './cases/interactions-history.ts';
import { interactionsKeys } from './cases/interactions-keys.ts';
import { interactionsOrganisations } from './cases/interactions-organisations.ts';
import { memory } from './cases/memory.ts';
import { plan } from './cases/plan.ts';
import { record } from './cases/record.ts';
import { report } from './cases/report.ts';
import { telemetry } from './cases/telemetry.ts';
import { tenMillion } from './cases/ten-million.ts';
import { types } from './cases/types.ts';
import { uploadAgain } from './cases/upload-again.ts';
import { uploadCsv } from './cases/upload-csv.ts';
import { uploadHalf } from './cases/upload-half.ts';
import { uploadKeys } from './cases/upload-keys.ts';
import { uploadMostlyNew } from './cases/upload-mostly-new.ts';
import { uploadNew } from './cases/upload-new.ts';

/** All cases, in the order in which they are run and reported. */
export const cases: readonly Case[] = [
  uploadNew,
  uploadAgain,
  uploadHalf,
  uploadMostlyNew,
  uploadKeys,
  uploadCsv,
  types,
  interactions,
  interactionsKeys,
  interactionsHistory,
  interactionsCsv,
  interactionsOrganisations,
  interactionsBesideUploads,
  feed,
  tenMillion,
  report,
  memory,
  telemetry,
  checkOnly,
  plan,
  costs,
  citus,
  compare,
  record,
];
