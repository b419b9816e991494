// parts/search/: filters that are kept in the address, or next to it.

import { useNavigate } from '@tanstack/react-router';
import { personFields } from '../../format/personal.ts';

/**
 * Changes one filter of the screen; undefined removes it. The id of a person goes into the state of the history, everything else
 * into the address.
 */
export function useChangeFilter(): (name: string, value: string | undefined) => void {
  const navigate = useNavigate();
  return (name, value) => {
    const isPerson = personFields.has(name);
    return navigate({
      to: '.',
      search: (before) => (isPerson ? before : { ...before, [name]: value }),
      state: (before) => (isPerson ? { ...before, person: withField(before.person, name, value) } : before),
      replace: true,
    });
  };
}

function withField(
  before: Readonly<Record<string, string>> | undefined,
  name: string,
  value: string | undefined,
): Record<string, string> {
  const { [name]: _, ...others } = before ?? {};
  return value === undefined ? others : { ...others, [name]: value };
}
