import { useMutation, useQueryClient } from '@tanstack/react-query';
import { changeOrganisation, type OrganisationChange } from '../../api/organisations.ts';
import { readAgain } from '../../api/read-again.ts';

/** Changes an organisation, and then fetches the visible queries again. */
export function useAct<Wanted = void>(act: (wanted: Wanted) => Promise<unknown>, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: async () => {
      await readAgain(client);
      onDone();
    },
  });
}

export function useChange(slug: string, onDone: () => void) {
  return useAct((change: OrganisationChange) => changeOrganisation(slug, change), onDone);
}
