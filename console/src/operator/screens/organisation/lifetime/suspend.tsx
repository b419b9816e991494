import { useState } from 'react';
import { Failure } from '../../../../parts/failure.tsx';
import { Press } from '../../../../parts/press.tsx';
import { Question } from '../../../../parts/question.tsx';
import type { Organisation } from '../../../api/types.ts';
import { useChange } from '../use-change.ts';

/** Suspends or resumes the organisation, after confirmation. */
export function Suspend({ organisation }: { readonly organisation: Organisation }) {
  const { slug, suspended_at, deleted_at } = organisation;
  const [asking, setAsking] = useState(false);
  const changing = useChange(slug, () => {});
  const isSuspended = suspended_at !== null;
  const action = isSuspended ? 'Resume' : 'Suspend';
  return (
    <>
      <Press blocked={changing.isPending || deleted_at !== null} onClick={() => setAsking(true)}>
        {action}
      </Press>
      {changing.error && <Failure error={changing.error} what={`${action} failed`} />}
      {asking && (
        <Question
          title={`${action} ${slug}?`}
          action={`${action} ${slug}`}
          harmless={isSuspended}
          onNo={() => setAsking(false)}
          onYes={() => {
            setAsking(false);
            changing.mutate({ suspended: !isSuspended });
          }}
        >
          <p>
            {isSuspended
              ? 'Within 5 seconds its keys work again.'
              : 'Within 5 seconds, requests with its keys are answered with 403 by every process. Its data stays, and you can resume it at any time.'}
          </p>
        </Question>
      )}
    </>
  );
}
