import { Link } from '@tanstack/react-router';
import { Time } from '../../../format/time.tsx';
import { Badge } from '../../../parts/badge.tsx';
import { None } from '../../../parts/notices.tsx';
import { Press } from '../../../parts/press.tsx';
import { type Column, Table } from '../../../parts/table.tsx';
import type { Key } from '../../api/types.ts';
import { keyStateOf } from './key-state.ts';

interface KeyTableProps {
  readonly keys: readonly Key[];
  /** Whether the table contains several organisations' keys. */
  readonly ofAll: boolean;
  /** Whether the organisation is deleted. Its keys can then only be revoked. */
  readonly ofDeleted: boolean;
  /** Called to rotate a key. Undefined if the token is read-only. */
  readonly onRotate: ((key: Key) => void) | undefined;
  readonly onRevoke: (key: Key) => void;
}

export function KeyTable({ keys, ofAll, ofDeleted, onRotate, onRevoke }: KeyTableProps) {
  const nowMs = Date.now();
  const columns: readonly Column<Key>[] = [
    {
      title: 'Key',
      cell: ({ key_id, label }) => (
        <>
          <code>{key_id}</code>
          {label !== null && <div className="hint">{label}</div>}
        </>
      ),
    },
    ...(ofAll
      ? [{ title: 'Organisation', cell: (key: Key) => <OfOrganisation slug={key.organisation} /> }]
      : []),
    { title: 'Permissions', cell: (key) => <Permissions {...key} /> },
    { title: 'State', cell: (key) => <State {...key} nowMs={nowMs} /> },
    { title: 'Last used', cell: ({ last_used_at }) => <Time value={last_used_at} /> },
    {
      title: 'Issued',
      cell: ({ created_at, created_by }) => (
        <div>
          <Time value={created_at} />
          <div className="hint">by {created_by}</div>
        </div>
      ),
    },
    ...(onRotate === undefined
      ? []
      : [
          {
            title: 'Actions',
            cell: (key: Key) =>
              keyStateOf(key, nowMs).inUse ? (
                <Actions
                  keyId={key.key_id}
                  canRotate={!ofDeleted}
                  isLink={key.link}
                  onRotate={() => onRotate(key)}
                  onRevoke={() => onRevoke(key)}
                />
              ) : (
                <None />
              ),
          },
        ]),
  ];
  return <Table caption="Keys" columns={columns} rows={keys} keyOf={({ key_id }) => key_id} />;
}

function OfOrganisation({ slug }: { readonly slug: string }) {
  return (
    <Link to="/organisations/$slug/keys" params={{ slug }}>
      {slug}
    </Link>
  );
}

function Permissions({ browser, origins, permissions }: Pick<Key, 'browser' | 'origins' | 'permissions'>) {
  if (browser) return `record interactions from ${origins.join(', ')}`;
  return permissions.join(', ');
}

function State({ nowMs, ...key }: Key & { readonly nowMs: number }) {
  const { tone, text } = keyStateOf(key, nowMs);
  const at = key.revoked_at ?? key.expires_at;
  return (
    <div>
      <Badge tone={tone}>{text}</Badge>
      {at !== null && (
        <div className="hint">
          {key.revoked_at === null && text !== 'Expired' && 'until '}
          <Time value={at} />
        </div>
      )}
      {key.successor_of !== null && (
        <div className="hint">
          replaces <code>{key.successor_of}</code>
        </div>
      )}
    </div>
  );
}

interface ActionsProps {
  readonly keyId: string;
  readonly canRotate: boolean;
  /** Whether it is the key of a link. Nobody has its text, so nobody could replace it by its successor. */
  readonly isLink: boolean;
  readonly onRotate: () => void;
  readonly onRevoke: () => void;
}

function Actions({ keyId, canRotate, isLink, onRotate, onRevoke }: ActionsProps) {
  const ofKey = <span className="visually-hidden"> the key {keyId}</span>;
  return (
    <div className="row-actions">
      {!isLink && (
        <Press className="quiet" blocked={!canRotate} onClick={onRotate}>
          Rotate{ofKey}
        </Press>
      )}
      <button type="button" className="quiet" onClick={onRevoke}>
        Revoke{ofKey}
      </button>
    </div>
  );
}
