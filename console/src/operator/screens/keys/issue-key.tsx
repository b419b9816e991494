import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { describePermission, generalPermissions } from '../../../api/permissions.ts';
import { CheckFilter } from '../../../parts/filters.tsx';
import { issueKey, keysPath } from '../../api/keys.ts';
import { readAgain } from '../../api/read-again.ts';
import type { IssuedKey } from '../../api/types.ts';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { FormField } from '../../parts/form-field.tsx';
import { emptyForm, issueLine, type KeyForm, keyRequestOf, typePermissions } from './key-form.ts';

const labelLengthMax = 200;

interface IssueKeyProps {
  readonly slug: string;
  readonly onIssued: (issued: IssuedKey) => void;
  readonly onClose: () => void;
}

export function IssueKey({ slug, onIssued, onClose }: IssueKeyProps) {
  const [form, setForm] = useState(emptyForm);
  const set = (changed: Partial<KeyForm>) => setForm((before) => ({ ...before, ...changed }));
  const client = useQueryClient();
  const wanted = keyRequestOf(slug, form);
  const issuing = useMutation({
    mutationFn: () => issueKey(wanted),
    // The response contains the key, so drop it from memory as soon as the screen no longer shows it.
    gcTime: 0,
    onSuccess: async (issued) => {
      onIssued(issued);
      await readAgain(client);
    },
  });
  return (
    <FormDialog
      title={`Issue a key for ${slug}`}
      action="Issue the key"
      failed="The key could not be issued"
      sending={issuing}
      call={{ path: keysPath, method: 'POST', body: JSON.stringify(wanted), intake: issueLine(wanted) }}
      onSubmit={() => issuing.mutate()}
      onClose={onClose}
    >
      <CheckFilter
        label="Browser key: for web pages, where every visitor can read it"
        checked={form.browser}
        onChange={(browser) => set({ browser })}
      />
      {form.browser ? (
        <Origins text={form.origins} onChange={(origins) => set({ origins })} />
      ) : (
        <Permissions chosen={form.permissions} onChange={(permissions) => set({ permissions })} />
      )}
      <FormField
        label="Label"
        optional
        value={form.label}
        onChange={(label) => set({ label })}
        maxLength={labelLengthMax}
        hint="What the key is for, such as nightly export."
      />
      <FormField
        label="Expires"
        optional
        type="datetime-local"
        value={form.expires}
        onChange={(expires) => set({ expires })}
        hint="In your time zone. If empty, the key works until it is revoked."
      />
    </FormDialog>
  );
}

interface PermissionsProps {
  readonly chosen: ReadonlySet<string>;
  readonly onChange: (chosen: ReadonlySet<string>) => void;
}

function Permissions({ chosen, onChange }: PermissionsProps) {
  const toggle = (permission: string, checked: boolean) => {
    const others = [...chosen].filter((other) => other !== permission);
    onChange(new Set(checked ? [...others, permission] : others));
  };
  const hasAll = chosen.has('data:write');
  return (
    <fieldset>
      <legend>Permissions</legend>
      {generalPermissions.map((permission) => (
        <label key={permission} className="check check-explained">
          <input
            type="checkbox"
            checked={chosen.has(permission)}
            onChange={({ target }) => toggle(permission, target.checked)}
          />
          <span>
            <code>{permission}</code> <span className="hint">{describePermission(permission)}</span>
          </span>
        </label>
      ))}
      <details>
        <summary>Limit uploads to some types</summary>
        {hasAll && (
          <p className="hint">
            <code>data:write</code> covers every type. Clear it to choose some of them.
          </p>
        )}
        <div className="checks">
          {typePermissions.map((permission) => (
            <label key={permission} className="check">
              <input
                type="checkbox"
                disabled={hasAll}
                checked={hasAll || chosen.has(permission)}
                onChange={({ target }) => toggle(permission, target.checked)}
              />
              {permission.replace('data:write:', '')}
            </label>
          ))}
        </div>
      </details>
    </fieldset>
  );
}

interface OriginsProps {
  readonly text: string;
  readonly onChange: (text: string) => void;
}

function Origins({ text, onChange }: OriginsProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>Origins of the pages</label>
      <textarea
        id={id}
        rows={3}
        required
        value={text}
        autoComplete="off"
        spellCheck={false}
        aria-describedby={`${id}-hint`}
        onChange={({ target }) => onChange(target.value)}
      />
      <p className="hint" id={`${id}-hint`}>
        One per line, at most 10, such as https://shop.example. The key only records interactions, and only
        from these pages.
      </p>
    </div>
  );
}
