import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { shellOptions, shellWord } from '../../../format/shell-word.ts';
import { createOrganisation, organisationsPath } from '../../api/organisations.ts';
import { readAgain } from '../../api/read-again.ts';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { FormField } from '../../parts/form-field.tsx';

const nameLengthMax = 200;
/** Browsers compile the pattern with the v flag, which does not allow an unescaped hyphen in a character class. */
const slugFieldPattern = '[a-z0-9]+(?:-+[a-z0-9]+)*';

export function CreateOrganisation({ onClose }: { readonly onClose: () => void }) {
  const [slug, setSlug] = useState('');
  const [name, setName] = useState('');
  const client = useQueryClient();
  const navigate = useNavigate();
  const wanted = { slug, ...(name.trim() === '' ? {} : { name: name.trim() }) };
  const creating = useMutation({
    mutationFn: () => createOrganisation(wanted),
    onSuccess: async () => {
      await readAgain(client);
      await navigate({ to: '/organisations/$slug', params: { slug } });
    },
  });
  return (
    <FormDialog
      title="Create an organisation"
      action="Create"
      failed="The organisation could not be created"
      sending={creating}
      call={{
        path: organisationsPath,
        method: 'POST',
        body: JSON.stringify(wanted),
        intake: `intake-server organisations create ${shellWord(slug || '<slug>')}${shellOptions({ name: wanted.name })}`,
      }}
      onSubmit={() => creating.mutate()}
      onClose={onClose}
    >
      <FormField
        label="Slug"
        value={slug}
        onChange={setSlug}
        required
        pattern={slugFieldPattern}
        maxLength={63}
        title="Lower-case letters, digits and hyphens"
        hint="Identifies the organisation permanently: lower-case letters, digits and hyphens, such as acme."
      />
      <FormField
        label="Name"
        optional
        value={name}
        onChange={setName}
        maxLength={nameLengthMax}
        hint="For people; it can be changed. Without a name, the slug is used."
      />
    </FormDialog>
  );
}
