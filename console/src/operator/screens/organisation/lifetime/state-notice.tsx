import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { countOf } from '../../../../format/format.ts';
import { Time } from '../../../../format/time.tsx';
import { refreshSeconds, settingsQuery } from '../../../api/activity.ts';
import type { Organisation } from '../../../api/types.ts';

/** Appears above every screen of an organisation whose keys are refused. */
export function StateNotice({ organisation }: { readonly organisation: Organisation }) {
  const { suspended_at, deleted_at, removal } = organisation;
  if (removal !== null)
    return (
      <Notice title="This organisation is being removed.">
        <p>
          Since <Time value={removal.started_at} />. {countOf(removal.rows, 'row')} removed so far
          {removal.table !== null && (
            <>
              , now from the table <code>{removal.table}</code>
            </>
          )}
          . It can no longer be restored, and its slug can be used again when it is gone.
        </p>
        <p className="hint">Refreshes every {refreshSeconds} seconds while this page is visible.</p>
      </Notice>
    );
  if (deleted_at !== null)
    return (
      <Notice title="This organisation is deleted.">
        <p>
          Since <Time value={deleted_at} /> all of its keys are answered with 410.{' '}
          <Until deletedAt={deleted_at} />
        </p>
        <p>Until it is restored, nothing about it can be changed. Its keys can be revoked.</p>
      </Notice>
    );
  if (suspended_at === null) return null;
  return (
    <Notice title="This organisation is suspended.">
      <p>
        Since <Time value={suspended_at} /> requests with its keys are answered with 403. Its data stays.
      </p>
    </Notice>
  );
}

function Notice({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="notice notice-bad">
      <p className="notice-title">{title}</p>
      {children}
    </div>
  );
}

function Until({ deletedAt }: { readonly deletedAt: string }) {
  const days = useQuery(settingsQuery).data?.deleted_organisations_kept_days;
  if (days === undefined)
    return 'It can be restored for a limited time; then all of its data is permanently removed.';
  const untilMs = Date.parse(deletedAt) + days * 86_400_000;
  const until = <Time value={new Date(untilMs).toISOString()} />;
  if (untilMs < Date.now())
    return (
      <>Its removal was due at {until} and can begin at any moment; until it begins, it can be restored.</>
    );
  return <>It can be restored until {until}; then all of its data is permanently removed.</>;
}

/** Replaces the screens of an organisation that was removed while the operator was viewing it. */
export function Removed() {
  return (
    <div className="notice">
      <p className="notice-title">This organisation was removed.</p>
      <p>
        None of its data is left, and its slug can be used again. The <Link to="/audit">audit log</Link> shows
        how many rows were removed.
      </p>
    </div>
  );
}
