import pg from 'pg';

/**
 * A connection without named prepared statements. Behind a pooler in transaction mode the next transaction may run in
 * another session, which does not know the name, or knows it for a statement of another process.
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
