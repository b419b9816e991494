// http/admin/: the operations of the admin API.

import type { Operation } from '../operation/operation.ts';
import { healthOperations } from '../routes/health.ts';
import { auditOperations } from './audit.ts';
import { consoleOperations } from './console-links.ts';
import { keyOperations } from './keys.ts';
import { organisationOperations } from './organisations.ts';
import type { AdminParts } from './parts.ts';

/** Everything an operator can do over HTTP. */
export const adminOperations: readonly Operation<AdminParts>[] = [
  ...organisationOperations,
  ...keyOperations,
  ...consoleOperations,
  ...auditOperations,
  ...healthOperations,
];
