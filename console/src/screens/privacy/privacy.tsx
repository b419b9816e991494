import { usePermits } from '../../frame/signed-in.tsx';
import { NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Terminal, type TerminalCall } from '../../parts/terminal.tsx';
import { ErasePeople } from './erase-people.tsx';
import { ErasureList } from './erasure-list.tsx';

const calls: readonly TerminalCall[] = [
  { what: 'List erasures', path: '/v1/erasures', intake: 'intake erasures' },
  {
    what: 'Erase people',
    path: '/v1/erasures',
    method: 'POST',
    body: '{"customer_ids": ["…"], "mode": "anonymise"}',
    intake: 'intake erase --file people.txt',
  },
];

export function PrivacyScreen() {
  const may = usePermits();
  return (
    <Page title="Erasures" lead="Erase people, and see what earlier erasures removed.">
      {may('data:erase') ? (
        <>
          <ErasureList />
          <ErasePeople />
          <Terminal calls={calls} />
        </>
      ) : (
        <NotPermitted permission="data:erase" what="Erasing people and reading erasures" />
      )}
    </Page>
  );
}
