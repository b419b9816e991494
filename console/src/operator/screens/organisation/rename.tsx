import { useState } from 'react';
import { Press } from '../../../parts/press.tsx';
import { organisationPath } from '../../api/organisations.ts';
import type { Organisation } from '../../api/types.ts';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { FormField } from '../../parts/form-field.tsx';
import { useChange } from './use-change.ts';

const nameLengthMax = 200;

export function Rename({ organisation }: { readonly organisation: Organisation }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Press blocked={organisation.deleted_at !== null} onClick={() => setOpen(true)}>
        Rename
      </Press>
      {open && <RenameDialog organisation={organisation} onClose={() => setOpen(false)} />}
    </>
  );
}

interface RenameDialogProps {
  readonly organisation: Organisation;
  readonly onClose: () => void;
}

function RenameDialog({ organisation: { slug, name: before }, onClose }: RenameDialogProps) {
  const [name, setName] = useState(before);
  const renaming = useChange(slug, onClose);
  return (
    <FormDialog
      title="Rename the organisation"
      action="Rename"
      failed="The organisation could not be renamed"
      sending={renaming}
      call={{ path: organisationPath(slug), method: 'PATCH', body: JSON.stringify({ name: name.trim() }) }}
      onSubmit={() => renaming.mutate({ name: name.trim() })}
      onClose={onClose}
    >
      <FormField
        label="Name"
        value={name}
        onChange={setName}
        required
        maxLength={nameLengthMax}
        hint={
          <>
            The slug <code>{slug}</code> stays.
          </>
        }
      />
    </FormDialog>
  );
}
