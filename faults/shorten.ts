import { halvesOf, type Plan } from './plan.ts';
import { type Result, type RunOptions, runPlan } from './run.ts';

const halvingsMax = 10;
const replaysEach = 3;

/**
 * Looks for a shorter plan that breaks the same promise. A run depends on timing, so each half is played three times before
 * it counts as harmless.
 */
export async function shorten({ plan, violations }: Result, options: RunOptions): Promise<Plan> {
  const kinds = new Set(violations.map(({ kind }) => kind));
  const fails = async (candidate: Plan) => {
    for (let replay = 0; replay < replaysEach; replay++) {
      const result = await runPlan(candidate, {
        ...options,
        stopsAt: (kind) => kinds.has(kind),
        log: () => {},
      });
      if (result.violations.some(({ kind }) => kinds.has(kind))) return true;
    }
    return false;
  };
  let shortest = plan;
  for (let halving = 0; halving < halvingsMax; ) {
    let isShorter = false;
    for (const half of halvesOf(shortest)) {
      if (halving++ >= halvingsMax) break;
      if (!(await fails(half))) continue;
      shortest = half;
      isShorter = true;
      options.log(`still fails with ${half.faults.length} faults and ${half.clients.length} clients`);
      break;
    }
    if (!isShorter) break;
  }
  options.log(`the shortest plan that failed: ${JSON.stringify(shortest)}`);
  return shortest;
}
