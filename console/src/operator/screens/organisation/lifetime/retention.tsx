import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { countOf, formatNumber } from '../../../../format/format.ts';
import { shellWord } from '../../../../format/shell-word.ts';
import { Facts } from '../../../../parts/facts.tsx';
import { Press } from '../../../../parts/press.tsx';
import { Question } from '../../../../parts/question.tsx';
import { settingsQuery } from '../../../api/activity.ts';
import { type KeptName, keptDaysMax, keptNames, organisationPath } from '../../../api/organisations.ts';
import type { Organisation } from '../../../api/types.ts';
import { FormDialog } from '../../../parts/form-dialog.tsx';
import { FormField } from '../../../parts/form-field.tsx';
import { changedNumbers, valuesOf } from '../../../parts/limits.ts';
import { Changing } from '../../../signed-in.tsx';
import { useChange } from '../use-change.ts';
import { defaultDays, keptTitles, retentionOptions, shortened } from './retention-rules.ts';

export function Retention({ organisation }: { readonly organisation: Organisation }) {
  const [open, setOpen] = useState(false);
  const serviceDays = useQuery(settingsQuery).data?.receipts_kept_days;
  const shown = (name: KeptName) => {
    const own = organisation[name];
    return own === null ? (
      <span className="muted">{describeDefault(name, serviceDays)}</span>
    ) : (
      `${countOf(own, 'day')} (own setting)`
    );
  };
  return (
    <section className="card">
      <h2>Retention</h2>
      <p className="hint">
        Older data is permanently deleted. Records are kept until they are erased, and have no retention.
      </p>
      <Facts facts={keptNames.map((name) => [keptTitles[name], shown(name)])} />
      <Changing what="Changing the retention">
        <div className="buttons">
          <Press blocked={organisation.deleted_at !== null} onClick={() => setOpen(true)}>
            Change retention
          </Press>
        </div>
      </Changing>
      {open && (
        <RetentionDialog
          organisation={organisation}
          serviceDays={serviceDays}
          onClose={() => setOpen(false)}
        />
      )}
    </section>
  );
}

function describeDefault(name: KeptName, serviceDays: number | undefined): string {
  const days = defaultDays(name, serviceDays);
  if (days === undefined) return 'service default';
  return days === Number.POSITIVE_INFINITY ? 'kept forever' : `${countOf(days, 'day')} (service default)`;
}

interface RetentionDialogProps {
  readonly organisation: Organisation;
  readonly serviceDays: number | undefined;
  readonly onClose: () => void;
}

/** Shows the form, or asks for confirmation if data may be deleted. */
function RetentionDialog({ organisation, serviceDays, onClose }: RetentionDialogProps) {
  const { slug } = organisation;
  // This is a snapshot from when the form was opened, because the page refreshes the organisation in the meantime.
  const [before] = useState(organisation);
  const [values, setValues] = useState(() => valuesOf(organisation, keptNames));
  const [asking, setAsking] = useState(false);
  const changing = useChange(slug, onClose);
  const change = changedNumbers(before, values);
  const shorter = shortened(before, change, serviceDays);
  const send = () => {
    setAsking(false);
    changing.mutate(change);
  };
  const submit = () => {
    if (Object.keys(change).length === 0) onClose();
    else if (shorter.length > 0) setAsking(true);
    else send();
  };
  if (asking)
    return (
      <Question
        title="Delete older data?"
        action="Save and delete"
        onYes={send}
        onNo={() => setAsking(false)}
      >
        <p>Within about an hour, this permanently deletes from {slug}:</p>
        <ul>
          {shorter.map((name) => (
            <li key={name}>
              {keptTitles[name].toLowerCase()} older than {countOf(change[name] ?? 0, 'day')}
            </li>
          ))}
        </ul>
        <p>A longer retention does not bring them back.</p>
      </Question>
    );
  return (
    <FormDialog
      title="Change retention"
      action="Save"
      failed="The retention could not be changed"
      sending={changing}
      call={{
        path: organisationPath(slug),
        method: 'PATCH',
        body: JSON.stringify(change),
        intake: `intake-server organisations set-retention ${shellWord(slug)}${retentionOptions(change)}`,
      }}
      onSubmit={submit}
      onClose={onClose}
    >
      <p>
        A shorter retention <strong>permanently deletes older data</strong>, within about an hour. You are
        asked before it is saved.
      </p>
      {keptNames.map((name) => {
        const max = Math.min(keptDaysMax, defaultDays(name, serviceDays) ?? keptDaysMax);
        return (
          <FormField
            key={name}
            label={keptTitles[name]}
            optional
            type="number"
            min={1}
            max={max}
            step={1}
            value={values[name]}
            onChange={(value) => setValues((old) => ({ ...old, [name]: value }))}
            hint={`1 to ${formatNumber(max)} days; empty: ${describeDefault(name, serviceDays)}`}
          />
        );
      })}
    </FormDialog>
  );
}
