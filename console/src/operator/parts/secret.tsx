import { type ReactNode, useEffect, useRef } from 'react';
import { Line } from '../../parts/terminal.tsx';

interface SecretProps {
  readonly title: string;
  readonly secret: string;
  /** What it is for, and when it ends. */
  readonly children: ReactNode;
  readonly onDone: () => void;
}

/**
 * A key or a link, which only the answer to its request has. It is part of the page, not of a dialog: Escape must not take
 * it away.
 */
export function Secret({ title, secret, children, onDone }: SecretProps) {
  const place = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another secret has to be seen too.
  useEffect(() => place.current?.focus(), [secret]);
  return (
    <section className="notice notice-warn" ref={place} tabIndex={-1} aria-label={title}>
      <p className="notice-title">{title}</p>
      <Line text={secret} />
      {children}
      <p>
        <strong>Copy it now.</strong> It is shown this once and stored nowhere: when you leave this screen,
        nobody can show it again.
      </p>
      <button type="button" onClick={onDone}>
        I have copied it
      </button>
    </section>
  );
}
