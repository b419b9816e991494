import { uuidFloor } from '../registry/uuid-v7.ts';

/** A bound for the planner: it need not look at the partitions that were made ahead. */
export const upToTomorrow = () => `change_id < '${uuidFloor(Date.now() + 24 * 3_600_000)}'`;
