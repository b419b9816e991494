import { useEffect, useId, useRef, useState } from 'react';

/**
 * The pause after which the filter is applied. It is long enough that typing a word causes only one request, and short
 * enough to feel immediate.
 */
const pauseMs = 250;

interface SearchFilterProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
  readonly lengthMax: number;
}

/** Shows a search field whose filter is applied while the user types, after each pause. */
export function SearchFilter({ label, value = '', onChange, lengthMax }: SearchFilterProps) {
  const id = useId();
  const [text, setText] = useState(value);
  const applied = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // Follow URL changes that were not typed here, such as going back, but keep text typed since the last pause.
  useEffect(() => {
    if (value === applied.current) return;
    applied.current = value;
    setText(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (typed: string) => {
    setText(typed);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      applied.current = typed.trim();
      onChange(typed.trim() || undefined);
    }, pauseMs);
  };
  return (
    <div className="field field-wide">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="search"
        autoComplete="off"
        spellCheck={false}
        maxLength={lengthMax}
        value={text}
        onChange={({ target }) => type(target.value)}
      />
    </div>
  );
}
