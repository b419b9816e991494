import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { shellOptions } from '../../../format/shell-word.ts';
import { CheckFilter } from '../../../parts/filters.tsx';
import { consoleLinksPath, makeConsoleLink } from '../../api/keys.ts';
import { readAgain } from '../../api/read-again.ts';
import type { ConsoleLink } from '../../api/types.ts';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { FormField, SelectField } from '../../parts/form-field.tsx';
import { periodChoices, periodFromNow } from '../../parts/periods.ts';
import { keepServiceAddress, keptServiceAddress, originOf } from './public-address.ts';

/** A newly created link. */
export interface MadeLink extends ConsoleLink {
  /** The service's address, which is empty if it is unknown. */
  readonly address: string;
}

interface MakeLinkProps {
  readonly slug: string;
  readonly onMade: (made: MadeLink) => void;
  readonly onClose: () => void;
}

export function MakeLink({ slug, onMade, onClose }: MakeLinkProps) {
  const [readOnly, setReadOnly] = useState(true);
  const [period, setPeriod] = useState('1h');
  const [address, setAddress] = useState(keptServiceAddress);
  const client = useQueryClient();
  const wanted = { organisation: slug, read_only: readOnly, expires_at: periodFromNow(period) };
  const making = useMutation({
    mutationFn: () => makeConsoleLink(wanted),
    // The response contains the link, so drop it from memory as soon as the screen no longer shows it.
    gcTime: 0,
    onSuccess: async (made) => {
      keepServiceAddress(originOf(address));
      onMade({ ...made, address: originOf(address) });
      await readAgain(client);
    },
  });
  const options = `${readOnly ? ' --read-only' : ''}${shellOptions({ expires: period })}`;
  return (
    <FormDialog
      title={`Make a link to the console of ${slug}`}
      action="Make the link"
      failed="The link could not be made"
      sending={making}
      call={{
        path: consoleLinksPath,
        method: 'POST',
        body: JSON.stringify(wanted),
        intake: `intake-server console link --organisation ${slug}${options}`,
      }}
      onSubmit={() => making.mutate()}
      onClose={onClose}
    >
      <p className="hint">It signs one person in to the console of the organisation, without a key.</p>
      <CheckFilter label="Read-only" checked={readOnly} onChange={setReadOnly} />
      <SelectField
        label="Access ends after"
        value={period}
        onChange={setPeriod}
        choices={periodChoices('1h', '8h', '1d', '7d', '30d')}
      />
      <FormField
        label="Address of the service"
        optional
        type="url"
        value={address}
        onChange={setAddress}
        placeholder="https://intake.example.com"
        hint="Where organisations reach it; without it, only the path of the link is shown. This browser remembers it."
      />
    </FormDialog>
  );
}
