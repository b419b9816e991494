/** A query that returns a row if the database belongs to a Citus cluster. */
export const selectCluster = `select from pg_extension where extname = 'citus'`;

/** Makes Citus propagate `set local` to the workers. It has no effect without Citus. */
export const clusterOptions = '-c citus.propagate_set_commands=local';
