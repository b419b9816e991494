import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { discardRejections, type RejectionFilter } from '../../api/rejections.ts';
import { countOf } from '../../format/format.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import { Failure } from '../../parts/failure.tsx';
import { Press } from '../../parts/press.tsx';
import { Question } from '../../parts/question.tsx';
import { forgetRejections } from './forget-rejections.ts';

interface DiscardProps {
  readonly filter: RejectionFilter;
  /** The number of rejections, which is 0 if nothing is left to discard. */
  readonly count: number;
}

/** Deletes a group of rejections after a confirmation that shows how many there are. */
export function Discard({ filter, count }: DiscardProps) {
  const may = usePermits();
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const [discarded, setDiscarded] = useState<number>();
  const discarding = useMutation({
    mutationFn: () => discardRejections(filter, setDiscarded),
    onSettled: () => forgetRejections(client),
  });
  if (!may('data:write')) return null;
  const yes = () => {
    setAsking(false);
    discarding.mutate();
  };
  return (
    <div className="action">
      {(count > 0 || !discarding.isIdle) && (
        <Press blocked={discarding.isPending || count === 0} onClick={() => setAsking(true)}>
          {discarding.isPending ? 'Discarding…' : 'Discard this group'}
        </Press>
      )}
      <p role="status" className="hint">
        {discarded !== undefined && `${countOf(discarded, 'rejection')} discarded.`}
      </p>
      {discarding.error && <Failure error={discarding.error} what="Discarding failed" />}
      {asking && (
        <Question
          title={`Discard ${countOf(count, 'rejection')}?`}
          action={`Discard ${countOf(count, 'rejection')}`}
          onYes={yes}
          onNo={() => setAsking(false)}
        >
          <p>
            This cannot be undone: the service keeps no other copy of these records. Rejections of the same
            group that arrive in the meantime are discarded too.
          </p>
        </Question>
      )}
    </div>
  );
}
