import { usePermits } from '../../frame/signed-in.tsx';
import { NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Terminal, type TerminalCall } from '../../parts/terminal.tsx';
import { AccessRequestList } from './access-request-list.tsx';
import { RequestAccess } from './request-access.tsx';

const calls: readonly TerminalCall[] = [
  {
    what: 'Request what is stored about a person; the intake line waits and writes the file too',
    path: '/v1/access-requests',
    method: 'POST',
    body: '{"customer_ids": ["…"]}',
    intake: 'intake access --customer "$CUSTOMER_ID" --output person.ndjson',
  },
  { what: 'List access requests', path: '/v1/access-requests' },
  {
    what: 'Download what was collected',
    path: '/v1/access-requests/$ACCESS_REQUEST_ID/records',
    intake: 'intake access --request "$ACCESS_REQUEST_ID" --output person.ndjson',
  },
];

export function AccessRequestsScreen() {
  const may = usePermits();
  return (
    <Page
      title="Access requests"
      lead="Collect everything that is stored about a person, and download it as a file."
    >
      {may('data:access') ? (
        <>
          <RequestAccess />
          <AccessRequestList />
          <Terminal calls={calls} />
        </>
      ) : (
        <NotPermitted permission="data:access" what="Requesting what is stored about a person" />
      )}
    </Page>
  );
}
