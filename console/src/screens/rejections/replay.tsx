import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { type RejectionFilter, type ReplayProgress, replayRejections } from '../../api/rejections.ts';
import { countOf, formatNumber } from '../../format/format.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import { Failure } from '../../parts/failure.tsx';
import { NotPermitted } from '../../parts/notices.tsx';
import { Press } from '../../parts/press.tsx';
import { forgetRejections } from './forget-rejections.ts';

interface ReplayProps {
  readonly filter: RejectionFilter;
  readonly what: string;
  /** Whether there is anything left to replay. If not, the result of the last replay stays visible. */
  readonly offered: boolean;
}

/** Replays rejections, one call after another until each rejection has been tried, and shows how many passed. */
export function Replay({ filter, what, offered }: ReplayProps) {
  const may = usePermits();
  const client = useQueryClient();
  const [progress, setProgress] = useState<ReplayProgress>();
  const stop = useRef(new AbortController());
  const replaying = useMutation({
    mutationFn: () => {
      stop.current = new AbortController();
      setProgress(undefined);
      return replayRejections(filter, setProgress, stop.current.signal);
    },
    onSettled: () => forgetRejections(client),
  });
  if (!may('data:write'))
    return offered && <NotPermitted permission="data:write" what="Replaying and discarding rejections" />;
  return (
    <div className="action">
      <div className="buttons">
        {(offered || !replaying.isIdle) && (
          <Press
            className="primary"
            blocked={replaying.isPending || !offered}
            onClick={() => replaying.mutate()}
          >
            {replaying.isPending ? 'Replaying…' : `Replay ${what}`}
          </Press>
        )}
        {replaying.isPending && (
          <button type="button" onClick={() => stop.current.abort()}>
            Stop after this call
          </button>
        )}
      </div>
      {replaying.isPending && <ReplayBar progress={progress} />}
      <p role="status" className="hint">
        {progress && progressText(progress, replaying.isPending)}
      </p>
      {replaying.error && <Failure error={replaying.error} what="The replay failed" />}
    </div>
  );
}

function ReplayBar({ progress }: { readonly progress: ReplayProgress | undefined }) {
  if (progress === undefined || progress.remaining === null) return <progress aria-label="Replay" />;
  const tried = progress.stored + progress.failed;
  // The remaining rejections include those that failed again.
  const all = progress.stored + Math.max(progress.remaining, progress.failed);
  return <progress aria-label="Replay" max={all} value={tried} />;
}

function progressText({ stored, failed, remaining }: ReplayProgress, pending: boolean): string {
  const tried = `${countOf(stored, 'record')} stored, ${formatNumber(failed)} failed again`;
  if (pending || remaining === null) return `${tried}.`;
  return `Done: ${tried}, ${countOf(remaining, 'rejection')} left.`;
}
