import { useState } from 'react';
import { shellWord } from '../../../../format/shell-word.ts';
import { Facts } from '../../../../parts/facts.tsx';
import { Press } from '../../../../parts/press.tsx';
import {
  isQuota,
  type LimitName,
  limitNames,
  limitRanges,
  organisationPath,
} from '../../../api/organisations.ts';
import type { Organisation } from '../../../api/types.ts';
import { FormDialog } from '../../../parts/form-dialog.tsx';
import { FormField } from '../../../parts/form-field.tsx';
import {
  changedNumbers,
  formatLimit,
  limitHint,
  limitOptions,
  limitTitles,
  valuesOf,
} from '../../../parts/limits.ts';
import { Changing } from '../../../signed-in.tsx';
import { useChange } from '../use-change.ts';
import { Quotas } from './quotas.tsx';

export function Limits({ organisation }: { readonly organisation: Organisation }) {
  const [open, setOpen] = useState(false);
  const shown = (name: LimitName) => {
    const own = organisation[name];
    return own === null ? (
      <span className="muted">service default</span>
    ) : (
      `${formatLimit(name, own)} (own limit)`
    );
  };
  return (
    <section className="card">
      <h2>Limits</h2>
      <p className="hint">
        Shared by all of its keys. A request over a limit is answered with 429 and a time to wait.
      </p>
      <Facts
        facts={limitNames.filter((name) => !isQuota(name)).map((name) => [limitTitles[name], shown(name)])}
      />
      <Quotas organisation={organisation} />
      <Changing what="Changing limits">
        <div className="buttons">
          <Press blocked={organisation.deleted_at !== null} onClick={() => setOpen(true)}>
            Change limits
          </Press>
        </div>
      </Changing>
      {open && <LimitsDialog organisation={organisation} onClose={() => setOpen(false)} />}
    </section>
  );
}

interface LimitsDialogProps {
  readonly organisation: Organisation;
  readonly onClose: () => void;
}

function LimitsDialog({ organisation, onClose }: LimitsDialogProps) {
  const { slug } = organisation;
  // This is a snapshot from when the form was opened, because the page refreshes the organisation in the meantime.
  const [before] = useState(organisation);
  const [values, setValues] = useState(() => valuesOf(organisation, limitNames));
  const changing = useChange(slug, onClose);
  const change = changedNumbers(before, values);
  const send = () => (Object.keys(change).length === 0 ? onClose() : changing.mutate(change));
  return (
    <FormDialog
      title="Change limits"
      action="Save"
      failed="The limits could not be changed"
      sending={changing}
      call={{
        path: organisationPath(slug),
        method: 'PATCH',
        body: JSON.stringify(change),
        intake: `intake-server organisations limit ${shellWord(slug)}${limitOptions(change)}`,
      }}
      onSubmit={send}
      onClose={onClose}
    >
      <p className="hint">
        A change takes effect within 5 seconds, a quota that is new or lower within a minute.
      </p>
      {limitNames.map((name) => (
        <FormField
          key={name}
          label={limitTitles[name]}
          optional
          type="number"
          {...limitRanges[name]}
          step={1}
          value={values[name]}
          onChange={(value) => setValues((old) => ({ ...old, [name]: value }))}
          hint={limitHint(name)}
        />
      ))}
    </FormDialog>
  );
}
