import { useState } from 'react';
import { Failure } from '../../../parts/failure.tsx';
import { Press } from '../../../parts/press.tsx';
import { Question } from '../../../parts/question.tsx';
import type { Organisation } from '../../api/types.ts';
import { Changing } from '../../signed-in.tsx';
import { useChange } from './use-change.ts';

interface SwitchProps {
  readonly organisation: Organisation;
  readonly field: 'lake' | 'recommendations_report';
  /** The name of what is switched, such as "lake". */
  readonly what: string;
  /** What happens when it is switched on or off. */
  readonly consequences: { readonly on: string; readonly off: string };
}

/** Switches a feature of an organisation on or off, after a question. */
export function Switch({ organisation, field, what, consequences }: SwitchProps) {
  const { slug, deleted_at, [field]: isOn } = organisation;
  const [asking, setAsking] = useState(false);
  const changing = useChange(slug, () => {});
  const action = `Switch the ${what} ${isOn ? 'off' : 'on'}`;
  return (
    <Changing what={`Switching the ${what} on or off`}>
      <div className="buttons">
        <Press blocked={changing.isPending || deleted_at !== null} onClick={() => setAsking(true)}>
          {action}
        </Press>
      </div>
      {changing.error && <Failure error={changing.error} what={`${action} failed`} />}
      {asking && (
        <Question
          title={`${action}?`}
          action={`${action} for ${slug}`}
          harmless={!isOn}
          onNo={() => setAsking(false)}
          onYes={() => {
            setAsking(false);
            changing.mutate({ [field]: !isOn });
          }}
        >
          <p>{isOn ? consequences.off : consequences.on}</p>
        </Question>
      )}
    </Changing>
  );
}
