import { type InputHTMLAttributes, type ReactNode, useId } from 'react';

interface LabelProps {
  readonly label: string;
  readonly optional?: boolean;
  readonly hint?: ReactNode;
}

type FormFieldProps = LabelProps &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'id' | 'value' | 'onChange'> & {
    readonly value: string;
    readonly onChange: (value: string) => void;
  };

export function FormField({ label, optional = false, hint, onChange, ...input }: FormFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>
        {label} {optional && <span className="muted">optional</span>}
      </label>
      <input
        autoComplete="off"
        spellCheck={false}
        {...input}
        id={id}
        {...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` })}
        onChange={({ target }) => onChange(target.value)}
      />
      {hint !== undefined && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface SelectFieldProps extends LabelProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly { readonly value: string; readonly text: string }[];
}

export function SelectField({ label, hint, value, onChange, choices }: SelectFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        value={value}
        {...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` })}
        onChange={({ target }) => onChange(target.value)}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.text}
          </option>
        ))}
      </select>
      {hint !== undefined && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}
