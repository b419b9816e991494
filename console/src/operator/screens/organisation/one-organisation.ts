import { createContext, useContext } from 'react';
import type { Organisation } from '../../api/types.ts';

/** Provides the organisation to the screens in this folder. */
export const OneOrganisation = createContext<Organisation | null>(null);

export function useOrganisation(): Organisation {
  const organisation = useContext(OneOrganisation);
  if (organisation === null) throw new Error('This screen belongs to an organisation.');
  return organisation;
}
