import type { ReactNode } from 'react';

/** Appears if a list is empty, and explains what to do next. */
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
  /** The singular name of an entry, such as "upload". */
  readonly one: string;
  /** A link to the unfiltered list. */
  readonly all: ReactNode;
  /** Explains what to do next if nothing exists yet. */
  readonly children: ReactNode;
}

/** Appears if a list is empty. */
export function NothingFound({ filtered, one, all, children }: NothingFoundProps) {
  if (!filtered) return children;
  return (
    <Empty title={`No ${one} matches these filters.`}>
      <p>{all}</p>
    </Empty>
  );
}

/** Appears in place of an action that the key does not permit. */
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

/** Shows a missing value, as a dash on the screen and as a word for screen readers. */
export function None() {
  return (
    <span className="muted">
      <span aria-hidden="true">–</span>
      <span className="visually-hidden">none</span>
    </span>
  );
}
