import type { ReactNode } from 'react';

/** An empty list says what to do next. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="notice notice-empty">
      <p className="notice-title">{title}</p>
      {children}
    </div>
  );
}

interface NothingFoundProps {
  readonly filtered: boolean;
  /** One of the list, such as "upload". */
  readonly one: string;
  /** A link to the list without filters. */
  readonly all: ReactNode;
  /** If there is nothing at all: what to do next. */
  readonly children: ReactNode;
}

/** In place of a list without rows. */
export function NothingFound({ filtered, one, all, children }: NothingFoundProps) {
  if (!filtered) return children;
  return (
    <Empty title={`No ${one} matches these filters.`}>
      <p>{all}</p>
    </Empty>
  );
}

/** In place of something that the key may not do. */
export function NotPermitted({ permission, what }: { readonly permission: string; readonly what: string }) {
  return (
    <div className="notice">
      <p>
        {what} needs the permission <code>{permission}</code>, which this key does not have. The operator can
        issue a key that has it.
      </p>
    </div>
  );
}

export function Done({ children }: { readonly children: ReactNode }) {
  return (
    <div className="notice notice-good" role="status">
      {children}
    </div>
  );
}

/** A value that is absent: a dash for the eye, a word for a screen reader. */
export function None() {
  return (
    <span className="muted">
      <span aria-hidden="true">–</span>
      <span className="visually-hidden">none</span>
    </span>
  );
}
