import { findTool, type Tool } from '../../scripts/tools.ts';

/** Returns whether a tool is installed. In CI it is, because global-setup.ts fails otherwise. */
export function hasTool(tool: Tool): boolean {
  const isInstalled = findTool(tool) !== undefined;
  if (!isInstalled) console.log(`Tests are skipped: they need ${tool}; run npm run install-tools`);
  return isInstalled;
}
