import pg from 'pg';

// Citus uses few SQLSTATEs, so only the error message shows what happened to a worker.

/** Matches if a connection to a worker broke. The last alternative means that it broke during the commit. */
const lost =
  /^(FATAL: +)?(server closed the connection|terminating connection|the database system is|postmaster was shut down|connection not open|no connection to the server|could not (send data to|receive data from) server|SSL |failure on connection marked as essential|could not commit transaction for shard)/;

/** Matches an error that the coordinator reports about itself. */
const coordinatorLost = /^postmaster was shut down/;

/** Matches an error that Citus reports before it commits on any worker, so nothing is stored. */
const lostBeforeCommit = /^failure on connection marked as essential/;

/** Citus uses different messages for a broken connection. */
const notConnected =
  /^connection to the remote node .*(connection refused|timeout expired|timed out|could not translate|no route to host|unreachable|starting up|shutting down)/is;

/** Citus itself writes this part of a message. The rest of the message may quote anything. */
const workerName =
  /^(?:connection to the remote node \S+@|failure on connection marked as essential: )(\S+:\d+)/;

const shardGone = /^could not find valid entry for shard (placement )?\d+/;

/** Returns whether a connection to a worker broke during a transaction, or the coordinator itself is shutting down. */
export function isWorkerLost({ code, message }: pg.DatabaseError): boolean {
  return code === 'XX000' && lost.test(message);
}

/** Returns whether the worker may have committed before the connection to it was lost. */
export function isWorkerLostInCommit(error: pg.DatabaseError): boolean {
  return isWorkerLost(error) && !lostBeforeCommit.test(error.message);
}

/** Returns whether the worker was never reached, so that it has stored nothing. */
export function isWorkerNotConnected({ message }: pg.DatabaseError): boolean {
  return notConnected.test(message);
}

/** As `host:port`. Errors about broken connections do not name a worker. */
export function workerNamedIn(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined;
  return workerName.exec(error.message)?.[1];
}

/** Returns whether the coordinator reports that it lost a worker, which means that the coordinator itself works. */
export function isLossOfWorker(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || coordinatorLost.test(error.message)) return false;
  return workerNamedIn(error) !== undefined || isWorkerLost(error);
}

/** Returns whether data was moved to another node after the statement was planned, so that a retry is enough. */
export function isMoved({ code, message = '' }: { code?: unknown; message?: string }): boolean {
  return code === 'XX000' && shardGone.test(message);
}
