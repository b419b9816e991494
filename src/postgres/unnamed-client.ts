import pg from 'pg';

/**
 * A connection that prepares no statement by name. Behind a pooler in transaction mode the next transaction may run in
 * another session of PostgreSQL, which does not know the name, or knows it for what another process prepared.
 */
export class UnnamedClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: `query` has nine overloads, and all of them pass through here.
  override query(statement: any, ...rest: any[]): any {
    const run = super.query as (...all: unknown[]) => unknown;
    return run.call(
      this,
      typeof statement === 'object' && !(statement instanceof pg.Query)
        ? { ...statement, name: undefined }
        : statement,
      ...rest,
    );
  }
}
