import { useMutation, useQueryClient } from '@tanstack/react-query';
import { changeOrganisation, type OrganisationChange } from '../../api/organisations.ts';
import { readAgain } from '../../api/read-again.ts';

/** Changes an organisation, then reads again what is shown. */
export function useChange(slug: string, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (change: OrganisationChange) => changeOrganisation(slug, change),
    onSuccess: async () => {
      await readAgain(client);
      onDone();
    },
  });
}
