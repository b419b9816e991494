import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useLocation } from '@tanstack/react-router';
import { interactionPagesQuery, liveInteractionsQuery, liveRowsMax } from '../../api/interactions.ts';
import { queryText } from '../../api/request.ts';
import { countOf, formatNumber } from '../../format/format.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { isFiltered } from '../../parts/filters.tsx';
import { Pages } from '../../parts/more.tsx';
import { Empty, NothingFound, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Line, Terminal } from '../../parts/terminal.tsx';
import { InteractionFilters } from './interaction-filters.tsx';
import { InteractionTable } from './interaction-table.tsx';

const route = getRouteApi('/frame/interactions');

export function InteractionsScreen() {
  const may = usePermits();
  const { live, ...shown } = route.useSearch();
  const person = useLocation({ select: ({ state }) => state.person });
  const filter = { ...shown, student_id: person?.student_id, user_id: person?.user_id };
  return (
    <Page title="Interactions" lead="What users did with tags, offers, shops and keywords, the newest first.">
      {may('interactions:read') ? (
        <>
          <InteractionFilters folded={!isFiltered(filter)} />
          {live === undefined ? <Stored filter={filter} /> : <Live filter={filter} />}
          <Terminal
            calls={[
              {
                path: `/user-interactions${queryText(shown)}`,
                intake: live === undefined ? 'intake export interactions' : 'intake interactions tail',
              },
            ]}
          />
        </>
      ) : (
        <NotPermitted permission="interactions:read" what="Reading interactions" />
      )}
    </Page>
  );
}

type Filter = Readonly<Record<string, string | undefined>>;

function Stored({ filter }: { readonly filter: Filter }) {
  const list = useInfiniteQuery(interactionPagesQuery(filter));
  return (
    <section className="card">
      <h2 className="visually-hidden">List</h2>
      <Pages
        query={list}
        what="The interactions"
        one="interaction"
        rowsOf={({ interactions }) => interactions}
        empty={<NoInteractions filtered={isFiltered(filter)} />}
      >
        {(rows) => <InteractionTable rows={rows} />}
      </Pages>
    </section>
  );
}

/** Shows the newest interactions, and refreshes every few seconds while the page is visible. */
function Live({ filter }: { readonly filter: Filter }) {
  const live = useQuery(liveInteractionsQuery(filter));
  return (
    <section className="card">
      <h2>Live</h2>
      <p className="hint">
        Updates every 3 seconds while this page is visible. Shows at most the newest{' '}
        {formatNumber(liveRowsMax)}.
      </p>
      <Answer query={live} what="The interactions" rows={8}>
        {(rows) =>
          rows.length === 0 ? (
            <NoInteractions filtered={isFiltered(filter)} />
          ) : (
            <>
              <InteractionTable rows={rows} />
              <p className="muted">{countOf(rows.length, 'interaction')}</p>
            </>
          )
        }
      </Answer>
    </section>
  );
}

function NoInteractions({ filtered }: { readonly filtered: boolean }) {
  const all = <Link to="/interactions">Show all interactions</Link>;
  return (
    <NothingFound filtered={filtered} one="interaction" all={all}>
      <Empty title="No interactions have been recorded yet.">
        <p>
          Websites and apps record them one by one with <code>POST /user-interactions</code>. Files of them
          can be <Link to="/upload-file">uploaded here</Link>, or from a terminal:
        </p>
        <Line text="intake upload interactions.csv" />
      </Empty>
    </NothingFound>
  );
}
