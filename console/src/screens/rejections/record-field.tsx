import { useEffect, useId, useRef } from 'react';
import type { FormField } from './record-form.ts';

interface RecordFieldProps {
  readonly field: FormField;
  readonly value: string;
  readonly problem: string | undefined;
  /**
   * How many times the form was submitted. It is set only for the first invalid field, which gets the focus again each time.
   */
  readonly focused: number | undefined;
  readonly onChange: (value: string) => void;
}

export function RecordField({ field, value, problem, focused, onChange }: RecordFieldProps) {
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (focused !== undefined) place.current?.querySelector<HTMLElement>('input, select')?.focus();
  }, [focused]);
  const described = [field.hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ');
  const attributes = {
    id,
    value,
    'aria-invalid': problem !== undefined,
    'aria-required': field.required,
    ...(described ? { 'aria-describedby': described } : {}),
  };
  return (
    <div className="field" ref={place}>
      <label htmlFor={id}>
        {field.name} {!field.required && <span className="muted">optional</span>}
      </label>
      <Control field={field} attributes={attributes} onChange={onChange} />
      {problem && (
        <p className="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
      {field.hint && (
        <p className="hint" id={`${id}-hint`}>
          {field.hint}
        </p>
      )}
    </div>
  );
}

interface ControlProps {
  readonly field: FormField;
  readonly attributes: { readonly id: string; readonly value: string };
  readonly onChange: (value: string) => void;
}

/**
 * Shows the input for a field. If the value is not one of the choices, it is added to them, because otherwise the error
 * would be confusing.
 */
function Control({ field: { kind, choices }, attributes, onChange }: ControlProps) {
  if (kind === 'choice' || kind === 'boolean') {
    const known = kind === 'boolean' ? ['true', 'false'] : choices;
    const shown =
      known.includes(attributes.value) || attributes.value === '' ? known : [...known, attributes.value];
    return (
      <select {...attributes} onChange={({ target }) => onChange(target.value)}>
        <option value="">not given</option>
        {shown.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
  }
  // Do not use type="number" or "date", because these inputs do not display an invalid value.
  return (
    <input
      {...attributes}
      type="text"
      inputMode={kind === 'number' ? 'decimal' : 'text'}
      autoComplete="off"
      spellCheck={false}
      onChange={({ target }) => onChange(target.value)}
    />
  );
}
