// The lifetime/ folder contains the components for an organisation's retention, suspension, deletion and restoration.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { countOf } from '../../../../format/format.ts';
import { shellWord } from '../../../../format/shell-word.ts';
import { Press } from '../../../../parts/press.tsx';
import { settingsQuery } from '../../../api/activity.ts';
import {
  deleteOrganisation,
  organisationPath,
  restoreOrganisation,
  restorePath,
} from '../../../api/organisations.ts';
import type { Organisation } from '../../../api/types.ts';
import { FormDialog } from '../../../parts/form-dialog.tsx';
import { FormField } from '../../../parts/form-field.tsx';
import { useAct } from '../use-change.ts';

interface DialogProps {
  readonly organisation: Organisation;
  readonly onClose: () => void;
}

/** Shows one button that either deletes or restores the organisation, so that the button keeps the focus. */
export function DeleteOrRestore({ organisation }: { readonly organisation: Organisation }) {
  // This is the requested action rather than the state, because the state changes before the dialog closes.
  const [asked, setAsked] = useState<'Delete' | 'Restore'>();
  const action = organisation.deleted_at === null ? 'Delete' : 'Restore';
  const close = () => setAsked(undefined);
  return (
    <>
      <Press blocked={organisation.removal !== null} onClick={() => setAsked(action)}>
        {action}
      </Press>
      {asked === 'Delete' && <DeleteDialog organisation={organisation} onClose={close} />}
      {asked === 'Restore' && <RestoreDialog organisation={organisation} onClose={close} />}
    </>
  );
}

function DeleteDialog({ organisation: { slug }, onClose }: DialogProps) {
  const [typed, setTyped] = useState('');
  const days = useQuery(settingsQuery).data?.deleted_organisations_kept_days;
  const deleting = useAct(() => deleteOrganisation(slug), onClose);
  return (
    <FormDialog
      title={`Delete ${slug}?`}
      action={`Delete ${slug}`}
      harmful
      failed="The organisation could not be deleted"
      sending={deleting}
      call={{
        path: organisationPath(slug),
        method: 'DELETE',
        intake: `intake-server organisations delete ${shellWord(slug)} --confirm ${shellWord(slug)}`,
      }}
      onSubmit={() => deleting.mutate()}
      onClose={onClose}
    >
      <ul>
        <li>Within 5 seconds, requests with its keys are answered with 410 by every process.</li>
        <li>
          You can restore it, with all of its data and keys,{' '}
          {days === undefined ? 'for a limited time' : <>for {countOf(days, 'day')}</>}.
        </li>
        <li>
          Then all of its data is permanently removed: records, interactions, rejections, receipts and keys.
        </li>
      </ul>
      <FormField
        label="Type the slug to confirm"
        value={typed}
        onChange={setTyped}
        required
        pattern={slug}
        title={slug}
        autoCapitalize="none"
        hint={<code>{slug}</code>}
      />
    </FormDialog>
  );
}

function RestoreDialog({ organisation: { slug, suspended_at }, onClose }: DialogProps) {
  const restoring = useAct(() => restoreOrganisation(slug), onClose);
  return (
    <FormDialog
      title={`Restore ${slug}?`}
      action={`Restore ${slug}`}
      failed="The organisation could not be restored"
      sending={restoring}
      call={{
        path: restorePath(slug),
        method: 'POST',
        intake: `intake-server organisations restore ${shellWord(slug)}`,
      }}
      onSubmit={() => restoring.mutate()}
      onClose={onClose}
    >
      <p>
        {suspended_at === null
          ? 'Within 5 seconds its keys work again. '
          : 'It is suspended, as before it was deleted. '}
        Its data, keys and limits are as they were.
      </p>
    </FormDialog>
  );
}
