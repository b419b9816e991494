import { slowness } from '../../test/support/slowness.ts';
import type { FaultKind } from '../faults/fault.ts';
import { faultKinds } from '../faults/kinds.ts';
import { drawPlan, type Plan } from '../plan.ts';
import { type Result, type RunOptions, runPlan } from '../run.ts';
import { makeDefectiveCopy } from './defective-copy.ts';
import type { Defect } from './defects.ts';

export interface Search {
  readonly seed: number;
  readonly seconds: number;
  /** How much sooner than usual copies and lakes have to be complete at the end. */
  readonly haste: number;
  /** The entry point of the program without defects. */
  readonly main: string;
  readonly log: (line: string) => void;
  /** Shows the figures of a run without a defect. */
  readonly show: (result: Result) => void;
}

const foundWithinSeconds = 180;

/**
 * Plays each plan with the program as it is, which must break no promise, and then with each defective copy until it breaks
 * the promise that it should. Some defects are found only by the checks at the end. Returns what is wrong.
 */
export async function findDefects(defects: readonly Defect[], search: Search): Promise<string[]> {
  const wrong: string[] = [];
  const plans = Map.groupBy(defects, ({ faults }) => JSON.stringify(faults));
  for (const those of plans.values()) {
    const plan = planFor(those[0] as Defect, search);
    search.log('without a defect');
    const { haste, main, log } = search;
    const control = await runPlan(plan, { main, haste, log: indented(log) });
    search.show(control);
    if (control.violations.length > 0) wrong.push('without a defect, a promise is broken');
    for (const defect of those) {
      const failure = await findDefect(defect, plan, search);
      if (failure) wrong.push(failure);
    }
  }
  return wrong;
}

/** Returns what is wrong, or null. */
async function findDefect(defect: Defect, plan: Plan, { main, haste, log }: Search): Promise<string | null> {
  const { name, breaks } = defect;
  const copy = makeDefectiveCopy(defect);
  try {
    const beganMs = performance.now();
    const stopsAt: RunOptions['stopsAt'] = (kind) => breaks.test(kind);
    const options = { main, defective: copy.main, stopsAt, haste, log: indented(log) };
    const { violations, counts } = await runPlan(plan, options);
    const seconds = Math.round((performance.now() - beganMs) / 1_000);
    const found = violations.find(({ kind }) => breaks.test(kind));
    if (!found) {
      log(`NOT FOUND after ${seconds} s: ${name}; clients: ${JSON.stringify(counts)}`);
      return `${name} was not found`;
    }
    log(`found after ${seconds} s: ${name}: ${found.kind}: ${found.detail.slice(0, 300)}`);
    return seconds > foundWithinSeconds * slowness()
      ? `${name} was found too late, after ${seconds} s`
      : null;
  } finally {
    copy.remove();
  }
}

const indented = (log: Search['log']) => (line: string) => log(`    ${line.slice(0, 300)}`);

function planFor({ faults: wanted }: Defect, { seed, seconds }: Search): Plan {
  const isWanted = ({ name }: FaultKind) => wanted?.some((text) => name.includes(text)) ?? isGentle(name);
  return drawPlan({ seed, seconds, faults: faultKinds.filter(isWanted), isSmall: true });
}

/** Faults that end soon, so that there is time for many requests. */
const isGentle = (name: string) => /killed|terminated|cut|answers lost|replaced/.test(name);
