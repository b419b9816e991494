import { type ReactNode, useEffect, useId, useState } from 'react';
import { fromLocalField, toLocalField, typeName } from '../format/format.ts';

interface FiltersProps {
  readonly children: ReactNode;
  /** Whether the filters start out collapsed on a narrow screen, where they would push the list out of sight. */
  readonly folded?: boolean;
}

export function Filters({ children, folded }: FiltersProps) {
  const [isOpen] = useState(() => !folded || !matchMedia('(max-width: 48rem)').matches);
  if (folded === undefined)
    return (
      <search className="filters" aria-label="Filters">
        {children}
      </search>
    );
  return (
    <search aria-label="Filters">
      <details className="filters-fold" open={isOpen}>
        <summary>Filters</summary>
        <div className="filters">{children}</div>
      </details>
    </search>
  );
}

interface FilterProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

interface Choice {
  readonly value: string;
  readonly text: string;
}

/** Returns whether any filter is set. */
export function isFiltered(filter: Readonly<Record<string, string | undefined>>): boolean {
  return Object.values(filter).some((value) => value !== undefined);
}

/** Returns the record types as choices for a filter. */
export function typeChoices(types: readonly string[]): readonly Choice[] {
  return types.map((value) => ({ value, text: typeName(value) }));
}

export function SelectFilter({
  label,
  value,
  onChange,
  choices,
  any = 'All',
}: FilterProps & { readonly choices: readonly Choice[]; readonly any?: string }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value ?? ''} onChange={({ target }) => onChange(target.value || undefined)}>
        <option value="">{any}</option>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.text}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Shows a text filter that is applied on blur or Enter, not on every keystroke. */
export function TextFilter({
  label,
  value = '',
  onChange,
  placeholder,
}: FilterProps & { readonly placeholder?: string }) {
  const id = useId();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const apply = () => {
    if (text.trim() !== value) onChange(text.trim() || undefined);
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="text"
        autoComplete="off"
        spellCheck={false}
        placeholder={placeholder}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onBlur={apply}
        onKeyDown={({ key }) => {
          if (key === 'Enter') apply();
        }}
      />
    </div>
  );
}

export function TimeFilter({ label, value, onChange }: FilterProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="datetime-local"
        value={toLocalField(value)}
        onChange={({ target }) => onChange(fromLocalField(target.value))}
      />
    </div>
  );
}

export function CheckFilter({
  label,
  checked,
  onChange,
}: {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} onChange={({ target }) => onChange(target.checked)} />
      {label}
    </label>
  );
}
