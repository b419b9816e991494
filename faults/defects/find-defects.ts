import { faultKinds } from '../faults/kinds.ts';
import { drawPlan, type PlanOptions } from '../plan.ts';
import { runPlan } from '../run.ts';
import { makeDefectiveCopy } from './defective-copy.ts';
import type { Defect } from './defects.ts';

export interface Found {
  readonly name: string;
  readonly seconds: number;
  /** The violation that gives the defect away, or null. */
  readonly violation: string | null;
}

/**
 * Runs each defective copy until a promise is broken, or for this time and the checks at the end, which find some of the
 * defects.
 */
export async function findDefects(
  defects: readonly Defect[],
  { seed, seconds: workSeconds }: Pick<PlanOptions, 'seed' | 'seconds'>,
  log: (line: string) => void,
): Promise<Found[]> {
  const found: Found[] = [];
  for (const defect of defects) {
    const copy = makeDefectiveCopy(defect);
    try {
      const wanted = defect.faults;
      const faults = faultKinds.filter(
        ({ name }) => wanted?.some((text) => name.includes(text)) ?? isGentle(name),
      );
      const plan = drawPlan({ seed, seconds: workSeconds, faults, isSmall: true });
      const beganMs = performance.now();
      const quietly = (line: string) => log(`    ${line.slice(0, 300)}`);
      const result = await runPlan(plan, {
        main: copy.main,
        stopsAt: (kind) => defect.breaks.test(kind),
        haste: 5,
        log: quietly,
      });
      const seconds = Math.round((performance.now() - beganMs) / 1_000);
      const violation = result.violations.find(({ kind }) => defect.breaks.test(kind))?.kind ?? null;
      if (!violation) log(`    clients: ${JSON.stringify(result.counts)}`);
      found.push({ name: defect.name, seconds, violation });
      log(
        `${violation ? 'found' : 'NOT FOUND'} after ${seconds} s: ${defect.name}: ${violation ?? 'nothing'}`,
      );
    } finally {
      copy.remove();
    }
  }
  return found;
}

/** Faults that end soon, so that there is time for many requests. */
const isGentle = (name: string) => /killed|terminated|cut|answers lost|replaced/.test(name);
