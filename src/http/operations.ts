import type { Operation } from './operation.ts';
import { healthOperations } from './routes/health.ts';
import { interactionOperations } from './routes/interactions.ts';
import { uploadOperations } from './routes/upload.ts';

/** Everything the API can do, in the order the reference shows it. */
export const operations: readonly Operation[] = [
  ...uploadOperations,
  ...interactionOperations,
  ...healthOperations,
];
