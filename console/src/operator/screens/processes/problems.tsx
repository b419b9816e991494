import type { ReactNode } from 'react';
import { countOf } from '../../../format/format.ts';
import type { ServiceState } from '../../api/types.ts';
import { problemsIn } from './judge-state.ts';

interface ProblemsProps {
  readonly state: ServiceState;
  readonly nowMs: number;
  /** The content that is shown if everything is in order. */
  readonly none: ReactNode;
  readonly children?: ReactNode;
}

/** Lists what is not in order. */
export function Problems({ state, nowMs, none, children }: ProblemsProps) {
  const problems = problemsIn(state, nowMs);
  if (problems.length === 0) return none;
  return (
    <div className="notice notice-bad">
      <p className="notice-title">{countOf(problems.length, 'thing is', 'things are')} not in order.</p>
      <ul>
        {problems.map((problem) => (
          <li key={problem}>{problem}</li>
        ))}
      </ul>
      {children}
    </div>
  );
}
