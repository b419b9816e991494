import { type ReactNode, useEffect, useRef } from 'react';
import { Line } from '../../parts/terminal.tsx';

interface SecretProps {
  readonly title: string;
  readonly secret: string;
  /** Explains what the secret is for and when it expires. */
  readonly children: ReactNode;
  readonly onDone: () => void;
}

/**
 * Shows a key or a link, which the service reveals only once. It is part of the page rather than a dialog, so that Escape
 * cannot close it.
 */
export function Secret({ title, secret, children, onDone }: SecretProps) {
  const place = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: every new secret must get the focus.
  useEffect(() => place.current?.focus(), [secret]);
  return (
    <section className="notice notice-warn" ref={place} tabIndex={-1} aria-label={title}>
      <p className="notice-title">{title}</p>
      <Line text={secret} />
      {children}
      <p>
        <strong>Copy it now.</strong> It is shown only once and is not stored: when you leave this screen,
        nobody can show it again.
      </p>
      <button type="button" onClick={onDone}>
        I have copied it
      </button>
    </section>
  );
}
