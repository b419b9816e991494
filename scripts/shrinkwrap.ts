import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Writes npm-shrinkwrap.json while the package is packed: the part of package-lock.json that the service needs. npm ignores
 * a lock file inside a package, but not a shrinkwrap, so an installation from a registry gets the versions that were tested.
 */

interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const packages: Readonly<Record<string, Locked>> = lock.packages;
const kept = new Set<string>();

/** Adds what a package needs, found as Node finds it: in its own node_modules, or in one further up. */
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
const inOrder = Object.entries(packages).filter(([path]) => kept.has(path));
lock.packages = { '': own, ...Object.fromEntries(inOrder) };
writeFileSync('npm-shrinkwrap.json', `${JSON.stringify(lock, undefined, 2)}\n`);
