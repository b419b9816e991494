import { createRequire } from 'node:module';

/**
 * Returns whether DuckDB's package for this platform is installed. npm leaves it out if optional packages are omitted. The
 * package is not loaded, because only the child process may do that.
 */
export function isDuckDbInstalled(): boolean {
  const name = `@duckdb/node-bindings-${process.platform}-${process.arch}`;
  try {
    // The package may be nested, so resolve it from the package that depends on it.
    const api = createRequire(import.meta.url).resolve('@duckdb/node-api');
    const bindings = createRequire(createRequire(api).resolve('@duckdb/node-bindings'));
    return [name, `${name}-musl`].some((one) => resolves(bindings, one));
  } catch {
    return false;
  }
}

function resolves(from: NodeJS.Require, name: string): boolean {
  try {
    from.resolve(`${name}/duckdb.node`);
    return true;
  } catch {
    return false;
  }
}
