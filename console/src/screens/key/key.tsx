import { describePermission, generalPermissions, permits } from '../../api/permissions.ts';
import type { Limit, Session } from '../../api/types.ts';
import { formatBytes, formatNumber } from '../../format/format.ts';
import { Time } from '../../format/time.tsx';
import { useSession } from '../../frame/signed-in.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Facts } from '../../parts/facts.tsx';
import { None } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { Terminal } from '../../parts/terminal.tsx';

export function KeyScreen() {
  const session = useSession();
  const { organisation, key } = session;
  return (
    <Page title="Key and limits" lead="The key of this session, and what the organisation may send.">
      <section className="card">
        <h2>Key</h2>
        <Facts
          facts={[
            ['Organisation', organisation.name],
            ['Short name', <code key="slug">{organisation.slug}</code>],
            ['Key', <code key="id">{key.key_id}</code>],
            ['Label', key.label || <None key="label" />],
            ['Key expires', <Time key="expires" value={key.expires_at} />],
            ['Session ends', <Time key="ends" value={session.expires_at} />],
          ]}
        />
      </section>
      <Permissions granted={key.permissions} />
      <Limits limits={session.limits} />
      <Terminal calls={[{ path: '/v1/data', intake: 'intake whoami' }]} />
    </Page>
  );
}

function Permissions({ granted }: { readonly granted: readonly string[] }) {
  const rows = [...new Set([...generalPermissions, ...granted])];
  return (
    <section className="card">
      <h2>Permissions</h2>
      <p className="hint">
        The operator chooses them when issuing the key. For other permissions, ask for another key.
      </p>
      <Table
        caption="Permissions of the key"
        columns={[
          { title: 'Permission', cell: (permission) => <code>{permission}</code> },
          { title: 'Allows', cell: (permission) => describePermission(permission) },
          {
            title: 'This key',
            cell: (permission) =>
              permits(granted, permission) ? <Badge tone="good">Yes</Badge> : <Badge tone="plain">No</Badge>,
          },
        ]}
        rows={rows}
        keyOf={(permission) => permission}
      />
    </section>
  );
}

function Limits({ limits }: { readonly limits: Session['limits'] }) {
  const write = ({ value, is_default }: Limit, format: (value: number) => string) => (
    <>
      {format(value)} {is_default && <span className="muted">(default)</span>}
    </>
  );
  return (
    <section className="card">
      <h2>Limits of the organisation</h2>
      <p className="hint">
        Shared by all of its keys. A request over a limit is answered with 429 and a time to wait. The
        operator can set other limits than the defaults.
      </p>
      <Facts
        facts={[
          ['Requests per second', write(limits.requests_per_second_max, formatNumber)],
          ['Records per second', write(limits.records_per_second_max, formatNumber)],
          ['Interactions per second', write(limits.interactions_per_second_max, formatNumber)],
          ['Bytes in flight', write(limits.bytes_in_flight_max, formatBytes)],
        ]}
      />
    </section>
  );
}
