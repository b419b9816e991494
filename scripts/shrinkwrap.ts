import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Writes npm-shrinkwrap.json while the package is being packed. The file is the part of package-lock.json that the service
 * needs. npm ignores a lock file inside a package but not a shrinkwrap, so an installation from a registry gets the tested
 * versions.
 */

interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  /** Set only for platform-specific packages. */
  readonly os?: readonly string[];
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const packages: Readonly<Record<string, Locked>> = lock.packages;
const kept = new Set<string>();

/**
 * Keeps a package's dependencies. They are resolved as in Node: in the package's own node_modules, or in one further
 * up.
 */
function keepNeededBy(path: string): void {
  const { dependencies, optionalDependencies, peerDependencies } = packages[path] ?? {};
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
    let folder = path;
    while (folder !== '' && !packages[`${folder}/node_modules/${name}`])
      folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')));
    const found = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (!packages[found] || kept.has(found)) continue;
    kept.add(found);
    keepNeededBy(found);
  }
}
keepNeededBy('');

const { devDependencies: _, workspaces: __, ...own } = lock.packages[''];
// npm installs the listed packages for every platform, which would be 570 MB of DuckDB. A user of the
// lake installs the package for one platform with `npm install --include=optional`, as the lake command says.
const inOrder = Object.entries(packages).filter(([path, { os }]) => kept.has(path) && !os);
lock.packages = { '': own, ...Object.fromEntries(inOrder) };
writeFileSync('npm-shrinkwrap.json', `${JSON.stringify(lock, undefined, 2)}\n`);
