import { useId, useState } from 'react';
import { countOf, formatNumber } from '../../format/format.ts';
import { type Kind, peopleMax, readIds } from './read-ids.ts';

/**
 * The ids of people that the user typed. They are kept only in this field, and never in a URL or in the browser's storage.
 */
interface TypedIds {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly ids: readonly string[];
  readonly problem: string | undefined;
}

export function useTypedIds(kind: Kind): TypedIds {
  const [text, setText] = useState('');
  const { ids, wrong } = readIds(text, kind);
  return { text, setText, ids, problem: problemOf(ids.length, wrong.length) };
}

function problemOf(valid: number, wrong: number): string | undefined {
  if (wrong > 0) return `${countOf(wrong, 'entry is', 'entries are')} not a valid id`;
  if (valid > peopleMax) return `at most ${formatNumber(peopleMax)} people at once`;
  return undefined;
}

interface IdFieldProps {
  readonly label: string;
  readonly rows: number;
  readonly kind: Kind;
  readonly typed: TypedIds;
}

export function IdField({ label, rows, kind, typed: { text, setText, ids, problem } }: IdFieldProps) {
  const id = useId();
  const howTo = kind === 'customers' ? 'Separated by spaces, commas or lines' : 'One per line';
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        value={text}
        autoComplete="off"
        spellCheck={false}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-hint`}
        onChange={({ target }) => setText(target.value)}
      />
      <p className={problem === undefined ? 'hint' : 'problem'} id={`${id}-hint`} role="status">
        {problem ?? (ids.length === 0 ? howTo : countOf(ids.length, 'id'))}
      </p>
    </div>
  );
}
