import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Plugin } from 'vite';

interface License {
  readonly name: string;
  readonly version: string;
  readonly identifier?: string;
  readonly text?: string;
}

/**
 * Adds the packages that workers use to the list of licenses. Vite bundles each worker separately and lists only the
 * packages of the pages. The first plugin is for the workers, and the second is for the pages.
 */
export function workerLicenses(fileName: string): readonly [Plugin, Plugin] {
  const folders = new Set<string>();
  const inWorkers: Plugin = {
    name: 'worker-packages',
    generateBundle(_options, bundle) {
      for (const output of Object.values(bundle))
        for (const module of output.type === 'chunk' ? output.moduleIds : []) {
          const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(module) ?? [];
          if (folder) folders.add(folder);
        }
    },
  };
  const inPages: Plugin = {
    name: 'worker-licenses',
    apply: 'build',
    writeBundle({ dir }) {
      const file = `${dir}/${fileName}`;
      const ofPages: License[] = JSON.parse(readFileSync(file, 'utf8'));
      const ofBoth = new Map([...ofPages, ...[...folders].map(licenseOf)].map((one) => [one.name, one]));
      const sorted = [...ofBoth.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
      writeFileSync(file, JSON.stringify(sorted, undefined, 2));
    },
  };
  return [inWorkers, inPages];
}

function licenseOf(folder: string): License {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
  const text = file && readFileSync(`${folder}/${file}`, 'utf8').trim();
  return { name, version, identifier: license, ...(text && { text }) };
}
