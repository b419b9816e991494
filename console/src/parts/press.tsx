import type { ButtonHTMLAttributes, MouseEvent } from 'react';

type PressProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled'> & { readonly blocked: boolean };

/** Shows a button that keeps the focus while it is blocked. `disabled` would move the focus to the top of the page. */
export function Press({ blocked, onClick, type = 'button', ...rest }: PressProps) {
  const press = (event: MouseEvent<HTMLButtonElement>) => {
    if (blocked) event.preventDefault();
    else onClick?.(event);
  };
  return <button {...rest} type={type} aria-disabled={blocked} onClick={press} />;
}
