import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useMemo, useRef, useState } from 'react';
import { uploadRecord } from '../../api/records.ts';
import type { Rejection, UploadAnswer } from '../../api/types.ts';
import { inConsoleWords } from '../../format/format.ts';
import { Failure } from '../../parts/failure.tsx';
import { Done } from '../../parts/notices.tsx';
import { Press } from '../../parts/press.tsx';
import { Modal } from '../../parts/question.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { isObject } from './count-missing-ids.ts';
import { forgetRejections } from './forget-rejections.ts';
import { RecordField } from './record-field.tsx';
import { fieldsOf, fieldsToCorrect, readForm, unknownFields, valuesOf } from './record-form.ts';

type Problems = ReadonlyMap<string, string>;

interface CorrectProps {
  readonly rejection: Rejection;
  readonly onClose: () => void;
}

/**
 * Shows a form for correcting the rejected record. Once the record is stored, the service removes the rejection with the
 * same id.
 */
export function Correct({ rejection, onClose }: CorrectProps) {
  const { type, mode } = rejection;
  const original = isObject(rejection.record) ? rejection.record : {};
  const fields = useMemo(() => fieldsToCorrect(rejection), [rejection]);
  const [values, setValues] = useState(() => valuesOf(fields, original));
  const [problems, setProblems] = useState<Problems>(() => problemsOf(rejection.errors));
  const [attempts, setAttempts] = useState(0);
  const client = useQueryClient();
  const sending = useMutation({
    mutationFn: ({ dryRun }: { readonly dryRun: boolean }) =>
      uploadRecord(type, readForm(fields, values, mode).record, { dryRun, mode }),
    onSuccess: (answer) => {
      setProblems(problemsOf(answer.batches.flatMap(({ data }) => data.errors)));
      setAttempts((before) => before + 1);
      if (!answer.dry_run && isStored(answer)) return forgetRejections(client);
    },
  });
  const send = (dryRun: boolean) => {
    const filled = readForm(fields, values, mode);
    setProblems(filled.problems);
    setAttempts((before) => before + 1);
    if (filled.problems.size === 0) sending.mutate({ dryRun });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send(false);
  };
  const stored = sending.data && !sending.data.dry_run && isStored(sending.data);
  const close = useRef<HTMLButtonElement>(null);
  // Move the focus, because the field or button that had it is gone once the record is stored.
  useEffect(() => {
    if (stored) close.current?.focus();
  }, [stored]);
  const ignored = unknownFields(fieldsOf(type), original);
  const firstWrong = fields.find(({ name }) => problems.has(name))?.name;
  return (
    <Modal title={`Correct a record of ${type}`} wide onClose={onClose}>
      <form onSubmit={submit} noValidate>
        {ignored.length > 0 && (
          <p className="hint">Fields that the type does not have are left out: {ignored.join(', ')}.</p>
        )}
        {mode === 'merge' && !stored && (
          <p className="hint">
            Only these fields are stored; an empty one is cleared. The others keep their values.
          </p>
        )}
        {!stored &&
          fields.map((field) => (
            <RecordField
              key={field.name}
              field={field}
              value={values[field.name] ?? ''}
              problem={problems.get(field.name)}
              focused={field.name === firstWrong ? attempts : undefined}
              onChange={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
            />
          ))}
        <div className="dialog-foot">
          <Outcome answer={sending.data} hasId={rejection.id !== null} />
          {sending.error && <Failure error={sending.error} what="The record could not be sent" />}
          <div className="buttons">
            <button ref={close} type="button" onClick={onClose}>
              {stored ? 'Close' : 'Cancel'}
            </button>
            {!stored && (
              <>
                <Press blocked={sending.isPending} onClick={() => send(true)}>
                  Check only
                </Press>
                <Press type="submit" className="primary" blocked={sending.isPending}>
                  {sending.isPending ? 'Sending…' : 'Store the record'}
                </Press>
              </>
            )}
          </div>
        </div>
      </form>
      <Terminal
        calls={[
          {
            path: `/v1/data/${type}${mode === 'merge' ? '?mode=merge' : ''}`,
            method: 'POST',
            body: '{"records": [{…}]}',
            intake: `intake upload ${type}.csv`,
          },
        ]}
      />
    </Modal>
  );
}

function problemsOf(
  errors: readonly { readonly field: string | null; readonly message: string }[],
): Problems {
  return new Map(
    errors.flatMap(({ field, message }) =>
      field === null ? [] : [[field, inConsoleWords(message)] as const],
    ),
  );
}

function isStored(answer: UploadAnswer): boolean {
  return answer.batches.every(({ status }) => status === 200);
}

function Outcome({ answer, hasId }: { readonly answer: UploadAnswer | undefined; readonly hasId: boolean }) {
  if (answer === undefined) return null;
  const messages = answer.batches.map(({ data }) => data.error ?? data.message).join(' ');
  if (!isStored(answer))
    return (
      <div className="notice notice-bad" role="alert">
        <p className="notice-title">The record failed again.</p>
        <p>{messages}</p>
      </div>
    );
  return (
    <Done>
      <p className="notice-title">
        {answer.dry_run ? 'The record would be stored.' : 'The record is stored.'}
      </p>
      <p>{messages}</p>
      {!answer.dry_run && !hasId && (
        <p>
          Its rejection stays, because the rejected record had no valid id. Discard it when the group is done.
        </p>
      )}
    </Done>
  );
}
