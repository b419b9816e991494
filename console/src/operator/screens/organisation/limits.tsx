import { useState } from 'react';
import { formatNumber } from '../../../format/format.ts';
import { shellWord } from '../../../format/shell-word.ts';
import { Facts } from '../../../parts/facts.tsx';
import { type LimitName, limitNames, limitRanges, organisationPath } from '../../api/organisations.ts';
import type { Organisation } from '../../api/types.ts';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { FormField } from '../../parts/form-field.tsx';
import {
  changedLimits,
  formatLimit,
  limitInputUnits,
  limitOptions,
  limitTitles,
  limitValuesOf,
} from '../../parts/limits.ts';
import { Changing } from '../../signed-in.tsx';
import { useChange } from './use-change.ts';

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
      <Facts facts={limitNames.map((name) => [limitTitles[name], shown(name)])} />
      <Changing what="Changing limits">
        <div className="buttons">
          <button type="button" onClick={() => setOpen(true)}>
            Change limits
          </button>
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
  const [values, setValues] = useState(() => limitValuesOf(organisation));
  const changing = useChange(slug, onClose);
  const change = changedLimits(organisation, values);
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
        Leave a field empty for the service default. A change takes effect within 5 seconds.
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
          onChange={(value) => setValues((before) => ({ ...before, [name]: value }))}
          hint={`${formatNumber(limitRanges[name].min)} to ${formatNumber(limitRanges[name].max)} ${limitInputUnits[name]}`}
        />
      ))}
    </FormDialog>
  );
}
