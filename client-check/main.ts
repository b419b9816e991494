import { adminToken, isBuilt, startTarget } from '../fuzz/target.ts';
import { checkPython } from './python.ts';
import { checkTypeScript } from './typescript.ts';

/**
 * Generates clients from the API descriptions, as users would. Each client uploads a record to the built service and reads
 * it back.
 */
async function main(): Promise<void> {
  if (!isBuilt()) throw new Error('there is no dist/main.js; run npm run build');
  const target = await startTarget();
  try {
    const args = [target.url, target.adminUrl, adminToken];
    const checks = Object.entries({ TypeScript: checkTypeScript, Python: checkPython });
    const checked = checks.map(async ([name, check]) => {
      await check(target.folder, args);
      console.log(`${name}: the generated client works`);
    });
    // Keep the service running until both checks are done, even if one of them has failed.
    await Promise.allSettled(checked);
    await Promise.all(checked);
  } finally {
    await target.stop();
  }
}

await main();
