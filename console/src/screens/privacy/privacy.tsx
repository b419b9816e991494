import { usePermits } from '../../frame/signed-in.tsx';
import { NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { ErasePeople } from './erase-people.tsx';
import { ErasureList } from './erasure-list.tsx';

export function PrivacyScreen() {
  const may = usePermits();
  return (
    <Page title="Privacy" lead="Erase people, and see what earlier erasures removed.">
      {may('data:erase') ? (
        <>
          <ErasureList />
          <ErasePeople />
          <Terminal path="/v1/erasures" intake="intake erasures" />
        </>
      ) : (
        <NotPermitted permission="data:erase" what="Erasing people and reading erasures" />
      )}
    </Page>
  );
}
