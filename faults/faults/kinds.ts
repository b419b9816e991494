import { databaseFaults } from './database-faults.ts';
import type { FaultKind } from './fault.ts';
import { lossyFaults } from './lossy-faults.ts';
import { networkFaults } from './network-faults.ts';
import { processFaults } from './process-faults.ts';
import { surroundingsFaults } from './surroundings-faults.ts';

/** Every kind of fault. */
export const faultKinds: readonly FaultKind[] = [
  ...processFaults,
  ...networkFaults,
  ...databaseFaults,
  ...lossyFaults,
  ...surroundingsFaults,
];
