// http/admin/: the admin API's operations.

import type { Operation } from '../operation/operation.ts';
import { healthOperations } from '../routes/health.ts';
import { activityOperations } from './activity.ts';
import { auditOperations } from './audit.ts';
import { consoleOperations } from './console-links.ts';
import { keyOperations } from './keys.ts';
import { organisationOperations } from './organisations.ts';
import type { AdminParts } from './parts.ts';
import { uploadOperations } from './uploads.ts';

export const adminOperations: readonly Operation<AdminParts>[] = [
  ...organisationOperations,
  ...uploadOperations,
  ...keyOperations,
  ...consoleOperations,
  ...auditOperations,
  ...activityOperations,
  ...healthOperations,
];
