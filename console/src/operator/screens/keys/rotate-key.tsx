import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { fromLocalField } from '../../../format/format.ts';
import { shellOptions, shellWord } from '../../../format/shell-word.ts';
import { keysPath, rotateKey } from '../../api/keys.ts';
import { readAgain } from '../../api/read-again.ts';
import type { IssuedKey, Key } from '../../api/types.ts';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { FormField, SelectField } from '../../parts/form-field.tsx';
import { periodChoices, secondsOf } from '../../parts/periods.ts';

interface RotateKeyProps {
  readonly rotated: Key;
  readonly onIssued: (issued: IssuedKey) => void;
  readonly onClose: () => void;
}

/** Issues a new key to replace an old one. The old key stays valid for the grace period. */
export function RotateKey({ rotated: { key_id }, onIssued, onClose }: RotateKeyProps) {
  const [grace, setGrace] = useState('1d');
  const [expires, setExpires] = useState('');
  const client = useQueryClient();
  const expires_at = fromLocalField(expires);
  const rotation = { grace_seconds: secondsOf(grace), ...(expires_at === undefined ? {} : { expires_at }) };
  const rotating = useMutation({
    mutationFn: () => rotateKey(key_id, rotation),
    // The response contains the key, so drop it from memory as soon as the screen no longer shows it.
    gcTime: 0,
    onSuccess: async (issued) => {
      onIssued(issued);
      await readAgain(client);
    },
  });
  return (
    <FormDialog
      title={`Rotate the key ${key_id}`}
      action="Issue the new key"
      failed="The key could not be rotated"
      sending={rotating}
      call={{
        path: `${keysPath}/${key_id}/rotate`,
        method: 'POST',
        body: JSON.stringify(rotation),
        intake: `intake-server keys rotate ${shellWord(key_id)}${shellOptions({ grace, expires: expires_at })}`,
      }}
      onSubmit={() => rotating.mutate()}
      onClose={onClose}
    >
      <p className="hint">
        The new key has the same permissions, origins and label. Both keys work until the old one ends.
      </p>
      <SelectField
        label="The old key keeps working for"
        value={grace}
        onChange={setGrace}
        choices={periodChoices('0s', '1h', '8h', '1d', '7d', '30d')}
      />
      <FormField
        label="The new key expires"
        optional
        type="datetime-local"
        value={expires}
        onChange={setExpires}
        hint="In your time zone. The expiry of the old key is not copied."
      />
    </FormDialog>
  );
}
