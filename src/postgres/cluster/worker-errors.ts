import pg from 'pg';

// Citus has few SQLSTATEs of its own: what happened to a worker can only be read in the text of an error.

/** A connection to a worker broke. The last alternative means that it broke during the commit. */
const lost =
  /^(FATAL: +)?(server closed the connection|terminating connection|the database system is|postmaster was shut down|connection not open|no connection to the server|could not (send data to|receive data from) server|SSL |failure on connection marked as essential|could not commit transaction for shard)/;

/** The coordinator reports this about itself. */
const coordinatorLost = /^postmaster was shut down/;

/** Citus reports this before it commits on any worker, so nothing is stored. */
const lostBeforeCommit = /^failure on connection marked as essential/;

/** No connection could be made; for a broken connection Citus uses other words. */
const notConnected =
  /^connection to the remote node .*(connection refused|timeout expired|timed out|could not translate|no route to host|unreachable|starting up|shutting down)/is;

/** Login, host and port are Citus's own words; what follows may quote anything. */
const workerName =
  /^(?:connection to the remote node \S+@|failure on connection marked as essential: )(\S+:\d+)/;

/** A statement was planned for a shard that no longer exists. */
const shardGone = /^could not find valid entry for shard (placement )?\d+/;

/** True if a connection to a worker broke in a transaction, or the coordinator itself stops. */
export function isWorkerLost({ code, message }: pg.DatabaseError): boolean {
  return code === 'XX000' && lost.test(message);
}

/** True if the worker may have committed before it was lost. */
export function isWorkerLostInCommit(error: pg.DatabaseError): boolean {
  return isWorkerLost(error) && !lostBeforeCommit.test(error.message);
}

/** True if the worker was never reached, so it has stored nothing. */
export function isWorkerNotConnected({ message }: pg.DatabaseError): boolean {
  return notConnected.test(message);
}

/** The worker, as `host:port`, that an error of the coordinator names. An error of a connection that broke names none. */
export function workerNamedIn(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined;
  return workerName.exec(error.message)?.[1];
}

/** True if a coordinator answers that it has lost a worker, so the coordinator itself can be used. */
export function isLossOfWorker(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || coordinatorLost.test(error.message)) return false;
  return workerNamedIn(error) !== undefined || isWorkerLost(error);
}

/** True if data was moved to another node after the statement was planned: a retry is enough. */
export function isMoved({ code, message = '' }: { code?: unknown; message?: string }): boolean {
  return code === 'XX000' && shardGone.test(message);
}
