import { useEffect, useId, useRef, useState } from 'react';

/** Long enough that a word is one request, short enough that nobody waits. */
const pauseMs = 250;

interface SearchFilterProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
  readonly lengthMax: number;
}

/** Applied while somebody types, after each pause. */
export function SearchFilter({ label, value = '', onChange, lengthMax }: SearchFilterProps) {
  const id = useId();
  const [text, setText] = useState(value);
  const applied = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // An address that was not typed here, such as after going back. What was typed since the last pause must stay.
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
