import { getRouteApi, Link } from '@tanstack/react-router';
import { queryText } from '../../../api/request.ts';
import { shellOptions } from '../../../format/shell-word.ts';
import { CheckFilter, Filters, TextFilter, TimeFilter } from '../../../parts/filters.tsx';
import { Empty } from '../../../parts/notices.tsx';
import { Page } from '../../../parts/page.tsx';
import { Terminal, type TerminalCall } from '../../../parts/terminal.tsx';
import { type KeyFilter, keysPath } from '../../api/keys.ts';
import { daysUntil } from '../../parts/periods.ts';
import { Changing } from '../../signed-in.tsx';
import { KeyList } from './key-list.tsx';

const route = getRouteApi('/frame/keys');

export function KeysScreen() {
  const filter = route.useSearch();
  return (
    <Page
      title="Keys"
      lead="The keys of all organisations. A new key is issued on the screen of its organisation."
    >
      <KeyFilters />
      <Changing what="Rotating and revoking keys">{null}</Changing>
      <KeyList filter={filter} ofAll empty={<NoKeys filtered={Object.keys(filter).length > 0} />} />
      <Terminal calls={callsFor(filter)} />
    </Page>
  );
}

function callsFor(filter: KeyFilter): readonly TerminalCall[] {
  const { organisation, expires_before, unused } = filter;
  const expiring = expires_before === undefined ? undefined : daysUntil(expires_before, Date.now());
  const options = shellOptions({ organisation, expiring }) + (unused === 'true' ? ' --unused' : '');
  return [
    {
      what: 'List',
      path: `${keysPath}${queryText({ ...filter })}`,
      intake: `intake-server keys list${options}`,
    },
    {
      what: 'Rotate a key',
      path: `${keysPath}/<key-id>/rotate`,
      method: 'POST',
      body: '{"grace_seconds": 86400}',
      intake: 'intake-server keys rotate <key-id> --grace 1d',
    },
    {
      what: 'Revoke a key',
      path: `${keysPath}/<key-id>/revoke`,
      method: 'POST',
      intake: 'intake-server keys revoke <key-id>',
    },
  ];
}

function KeyFilters() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const change = (name: keyof typeof search, value: string | undefined) =>
    navigate({ search: (before) => ({ ...before, [name]: value }), replace: true });
  return (
    <Filters>
      <TextFilter
        label="Organisation (slug)"
        value={search.organisation}
        onChange={(value) => change('organisation', value)}
      />
      <TimeFilter
        label="Expires before"
        value={search.expires_before}
        onChange={(value) => change('expires_before', value)}
      />
      <CheckFilter
        label="Never used"
        checked={search.unused === 'true'}
        onChange={(checked) => change('unused', checked ? 'true' : undefined)}
      />
    </Filters>
  );
}

function NoKeys({ filtered }: { readonly filtered: boolean }) {
  if (filtered)
    return (
      <Empty title="No active key matches these filters.">
        <p>
          <Link to="/keys">Show all keys</Link>
        </p>
      </Empty>
    );
  return (
    <Empty title="No key has been issued yet.">
      <p>
        <Link to="/organisations">Choose an organisation</Link> and issue its first key there.
      </p>
    </Empty>
  );
}
