// The parts/search/ folder contains filters that are stored in the URL or in the history state.

import { useNavigate } from '@tanstack/react-router';
import { personFields } from '../../format/personal.ts';

/**
 * Returns a function that changes one of the screen's filters, or removes it if the value is undefined. A person's id goes
 * into the history state, and everything else goes into the URL.
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
