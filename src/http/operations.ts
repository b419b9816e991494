import type { Operation } from './operation/operation.ts';
import { changesOperation } from './routes/changes.ts';
import { healthOperations } from './routes/health.ts';
import { interactionOperations } from './routes/interactions.ts';
import { lakeOperations } from './routes/lake.ts';
import { overviewOperation } from './routes/overview.ts';
import { accessOperations } from './routes/people/access-requests.ts';
import { erasureOperations } from './routes/people/erasures.ts';
import { recordOperations } from './routes/records.ts';
import { rejectionOperations } from './routes/rejections.ts';
import { reportOperations } from './routes/reports.ts';
import { requestOperations } from './routes/requests.ts';
import { runOperations } from './routes/runs.ts';
import { uploadOperations } from './routes/upload.ts';

/** In the order of the API reference. */
export const operations: readonly Operation[] = [
  ...uploadOperations,
  overviewOperation,
  ...recordOperations,
  changesOperation,
  ...requestOperations,
  ...runOperations,
  ...rejectionOperations,
  ...interactionOperations,
  ...reportOperations,
  ...lakeOperations,
  ...erasureOperations,
  ...accessOperations,
  ...healthOperations,
];
