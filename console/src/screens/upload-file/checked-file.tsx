import { useQueryClient } from '@tanstack/react-query';
import { Link, useBlocker } from '@tanstack/react-router';
import { useEffect, useId, useSyncExternalStore } from 'react';
import { IntakeError } from '../../../../client/src/errors.ts';
import { FileError } from '../../../../client/src/parsing/file-error.ts';
import { ApiError } from '../../api/request.ts';
import { countOf, formatNumber } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Failure } from '../../parts/failure.tsx';
import { Done } from '../../parts/notices.tsx';
import { Problems } from './problems.tsx';
import { rowsKeptMax } from './rows/failed-rows.ts';
import { type EarlierUpload, earlierUploadOf } from './rows/file-run.ts';
import type { FileUpload, Progress, Step, UploadState } from './rows/file-upload.ts';
import { saveRest } from './rows/save-rest.ts';
import { inScreenWords } from './rows/screen-words.ts';

interface CheckedFileProps {
  readonly upload: FileUpload;
  readonly fileName: string;
  readonly onChangeSettings: () => void;
}

/** Shows the file and its progress, from the check to the end of the upload. */
export function CheckedFile({ upload, fileName, onChangeSettings }: CheckedFileProps) {
  const state = useSyncExternalStore(upload.subscribe, upload.state);
  const { progress, failed, error } = state;
  const earlier = earlierUploadOf(error);
  useAskBeforeLeaving(state.canContinue || (progress !== undefined && progress.step !== 'check'));
  useForgetAfterUpload(state);
  return (
    <>
      <section className="card">
        <h2>{state.hasUploaded ? 'Upload' : 'Check'}</h2>
        {progress && <ProgressBar progress={progress} waiting={state.waiting} onStop={() => upload.stop()} />}
        {!progress && <Outcome state={state} place={upload.checker.place.toLowerCase()} />}
        {earlier && <UploadedBefore earlier={earlier} onAgain={() => upload.uploadAgain()} />}
        {error !== undefined && !earlier && <StepFailed error={error} hasFinished={hasFinished(state)} />}
        {!progress && !earlier && (
          <Actions upload={upload} state={state} onChangeSettings={onChangeSettings} />
        )}
      </section>
      {!progress && failed.count > 0 && (
        <section className="card">
          <h2>Failed rows</h2>
          <Problems key={state.finished?.step} upload={upload} state={state} />
          <div className="action">
            <button type="button" onClick={() => saveRest(fileName, upload.checker, failed.rows())}>
              {state.hasUploaded ? 'Save the rest' : 'Save the failed rows'}
            </button>
            <p className="hint">
              With the reason in the last column, which is ignored when the file is uploaded again.
              {!failed.isComplete &&
                ` Only the first ${formatNumber(rowsKeptMax)} failed rows are kept; ${formatNumber(failed.count - failed.keptCount)} more are not in the file.`}
            </p>
          </div>
        </section>
      )}
    </>
  );
}

const stepNames: Readonly<Record<Step, string>> = {
  check: 'Checking the file',
  'dry-run': 'Asking the service, nothing is stored',
  hash: 'Reading the file',
  upload: 'Uploading',
  'upload-corrected': 'Uploading the corrected rows',
};

interface ProgressBarProps {
  readonly progress: Progress;
  readonly waiting: string | undefined;
  readonly onStop: () => void;
}

function ProgressBar({ progress: { step, share, rows }, waiting, onStop }: ProgressBarProps) {
  const id = useId();
  return (
    <div className="upload-progress">
      <label htmlFor={id}>{stepNames[step]}</label>
      <progress id={id} max={1} value={share} />
      {step !== 'hash' && (
        <p className="hint">
          {countOf(rows, 'row')} {step === 'check' ? 'checked' : 'answered'}
        </p>
      )}
      {waiting && <p role="status">{waiting}</p>}
      <button type="button" onClick={onStop}>
        Stop
      </button>
    </div>
  );
}

function Outcome({ state, place }: { readonly state: UploadState; readonly place: string }) {
  const { finished, counts, cleared, failed, notSent, notKept } = state;
  const { hasUploaded, repeatedIds, firstRepeated, openLine } = state;
  return (
    <>
      {finished?.step === 'check' && (
        <Verdict good={finished.failed === 0}>
          {`${countOf(finished.rows - finished.failed, 'row')} of ${formatNumber(finished.rows)} can be uploaded` +
            (finished.failed === 0 ? '.' : `, ${formatNumber(finished.failed)} cannot.`)}
        </Verdict>
      )}
      {finished?.step === 'check' && finished.failed > 0 && (
        <p className="hint">
          {finished.failed < finished.rows
            ? 'Correct the failed rows below first, or upload the others now and correct the rest afterwards.'
            : 'Correct the rows below, or change how the file is read.'}
        </p>
      )}
      {finished?.step === 'dry-run' && (
        <Verdict good={finished.failed === 0}>
          {`The service would store ${countOf(finished.rows - finished.failed, 'row')} of ${formatNumber(finished.rows)}` +
            (finished.failed === 0
              ? '. Nothing is stored yet.'
              : `; ${formatNumber(finished.failed)} would fail. Nothing is stored yet.`)}
        </Verdict>
      )}
      {finished?.step === 'dry-run' && Object.keys(cleared).length > 0 && (
        <p className="notice">
          The upload would clear stored values:{' '}
          {Object.entries(cleared)
            .map(([field, count]) => `${field} in ${countOf(count, 'record')}`)
            .join(', ')}
          .
        </p>
      )}
      {hasUploaded && <StoredCounts state={state} />}
      {hasUploaded && finished && failed.count === 0 && (
        <Done>
          <p className="notice-title">The whole file is stored.</p>
        </Done>
      )}
      {hasUploaded && <ToUploads runId={state.run?.runId} />}
      {hasUploaded && counts.failed > 0 && (
        <p className="hint">
          Records that failed are kept as <Link to="/rejections">rejections</Link>. A rejection is removed
          when its corrected record is stored. If only a reference was missing, upload the missing record
          first, then replay the rejections there.
        </p>
      )}
      {hasUploaded && notSent > 0 && (
        <p className="hint">
          {countOf(notSent, 'row was', 'rows were')} not sent, so no receipt counts them and no rejection
          keeps them. Correct them below, or save the rest before you leave.
        </p>
      )}
      {hasUploaded && notKept > 0 && (
        <p className="hint">
          {countOf(notKept, 'row was', 'rows were')} sent and not kept, because of a problem of the service.
          Save the rest, and upload it later.
        </p>
      )}
      {!hasUploaded && repeatedIds > 0 && (
        <p className="notice">
          {countOf(repeatedIds, 'row has', 'rows have')} an id that an earlier row has, the first of them in{' '}
          {place} {firstRepeated}. The last row with an id replaces the others; check that the right column is
          the id.
        </p>
      )}
      {!hasUploaded && openLine !== undefined && (
        <p className="notice">
          The last line, line {openLine}, has no line break at its end. Google Sheets writes such files, but a
          file that was cut off looks the same: check that it is the last line of your data, and that its last
          value is complete.
        </p>
      )}
    </>
  );
}

function ToUploads({ runId }: { readonly runId: string | undefined }) {
  const may = usePermits();
  return (
    <p>
      {runId !== undefined && may('data:read') ? (
        <Link to="/uploads/runs/$runId" params={{ runId }}>
          Show this upload
        </Link>
      ) : (
        <Link to="/uploads">Show the receipts</Link>
      )}
    </p>
  );
}

interface UploadedBeforeProps {
  readonly earlier: EarlierUpload;
  readonly onAgain: () => void;
}

/** Asks before interactions are stored twice. Leaving this screen would end the upload, so the link opens another tab. */
function UploadedBefore({ earlier: { runId, opened }, onAgain }: UploadedBeforeProps) {
  const may = usePermits();
  return (
    <div className="notice" role="alert">
      <p className="notice-title">This file was uploaded before</p>
      <p>
        It was uploaded on <Time value={opened} />. What is stored of it is shown on the page of the upload{' '}
        {may('data:read') ? (
          <Link to="/uploads/runs/$runId" params={{ runId }} target="_blank">
            <code className="id">{runId}</code>
          </Link>
        ) : (
          <code className="id">{runId}</code>
        )}
        . If you upload the file again, the interactions that are already stored are stored twice.
      </p>
      <button type="button" className="danger" onClick={onAgain}>
        Upload again
      </button>
    </div>
  );
}

function Verdict({ good, children }: { readonly good: boolean; readonly children: string }) {
  return (
    <div className={good ? 'notice notice-good' : 'notice'} role="status">
      <p className="notice-title">{children}</p>
    </div>
  );
}

function StoredCounts({ state: { counts, notSent, notKept } }: { readonly state: UploadState }) {
  const shown = [
    ['Created', counts.created],
    ['Updated', counts.updated],
    ['Unchanged', counts.unchanged + counts.stale],
    ['Failed', counts.failed],
    ['Not sent', notSent],
    ...(notKept > 0 ? [['Not kept', notKept] as const] : []),
  ] as const;
  return (
    <dl className="counts upload-counts" aria-label="What was stored">
      {shown.map(([name, count]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{formatNumber(count)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Returns whether nothing is left to send, except corrected rows. */
function hasFinished({ hasUploaded, canContinue }: UploadState): boolean {
  return hasUploaded && !canContinue;
}

function StepFailed({ error, hasFinished }: { readonly error: unknown; readonly hasFinished: boolean }) {
  if (error instanceof FileError)
    return (
      <Failure
        error={new Error(error.lines.map(inScreenWords).join(' '))}
        what="The file could not be read to its end"
      />
    );
  if (!(error instanceof IntakeError)) return <Failure error={error} what="The upload was interrupted" />;
  const { status, code, message, requestId, details, idempotencyKeys } = error;
  return (
    <Failure
      error={new ApiError(status ?? 0, code, inScreenWords(message), { requestId, details })}
      what={hasFinished ? 'The upload could not be ended' : 'The upload was interrupted'}
    >
      {error.outcome === 'unknown' && <UnknownOutcome keys={idempotencyKeys} />}
    </Failure>
  );
}

/** Names the requests that may be stored. Leaving this screen would end the upload, so the links open another tab. */
function UnknownOutcome({ keys }: { readonly keys: readonly string[] }) {
  return (
    <>
      <p>
        The outcome is unknown: what was sent last may be stored. A request is stored if it has a receipt,
        which these links show:
      </p>
      <ul>
        {keys.map((key) => (
          <li key={key}>
            <Link to="/uploads" search={{ idempotency_key: key }} target="_blank">
              <code className="id">{key}</code>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

interface ActionsProps {
  readonly upload: FileUpload;
  readonly state: UploadState;
  readonly onChangeSettings: () => void;
}

function Actions({ upload, state, onChangeSettings }: ActionsProps) {
  const { hasUploaded, canContinue, corrected, failed, finished, run } = state;
  if (canContinue)
    return (
      <div className="action">
        <button type="button" className="primary" onClick={() => upload.continue()}>
          Continue the upload
        </button>
        <p className="hint">It continues where it was interrupted. Nothing is stored twice.</p>
      </div>
    );
  if (hasUploaded) {
    if (run?.hasEnded)
      return failed.count > 0 && <p>The upload has ended. Save the rest to correct it later.</p>;
    return (
      <>
        {failed.count > 0 && corrected === 0 && (
          <p>Correct rows below and upload them, or save the rest to correct it later.</p>
        )}
        <div className="buttons">
          {corrected > 0 && (
            <button type="button" className="primary" onClick={() => upload.uploadCorrected()}>
              Upload {countOf(corrected, 'corrected row')}
            </button>
          )}
          {run && (
            <button type="button" onClick={() => upload.finish()}>
              End the upload
            </button>
          )}
        </div>
      </>
    );
  }
  const passing = finished && finished.rows - finished.failed + corrected;
  return (
    <div className="buttons">
      {passing !== undefined && passing > 0 && (
        <>
          <button type="button" className="primary" onClick={() => upload.upload()}>
            Upload {countOf(passing, 'row')}
          </button>
          <button type="button" onClick={() => upload.dryRun()}>
            Check references too
          </button>
        </>
      )}
      {finished === undefined && (
        <button type="button" onClick={() => upload.check()}>
          Check again
        </button>
      )}
      <button type="button" onClick={onChangeSettings}>
        Change how it is read
      </button>
    </div>
  );
}

/**
 * Asks for confirmation before the user leaves the page. Leaving stops the upload, and its progress is stored nowhere else.
 */
function useAskBeforeLeaving(isUploading: boolean): void {
  useBlocker({
    disabled: !isUploading,
    enableBeforeUnload: isUploading,
    shouldBlockFn: () => !confirm('The upload stops when you leave this screen. Leave it?'),
  });
}

/** Invalidates the caches of other screens after an upload, because these screens show stored data. */
function useForgetAfterUpload({ hasUploaded, progress, run }: UploadState): void {
  const client = useQueryClient();
  const isDone = hasUploaded && progress === undefined;
  const hasEnded = run?.hasEnded;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end of the run is shown too.
  useEffect(() => {
    if (isDone) client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
  }, [client, isDone, hasEnded]);
}
