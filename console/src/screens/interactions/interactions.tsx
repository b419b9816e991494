import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useLocation } from '@tanstack/react-router';
import { interactionPagesQuery, liveInteractionsQuery, liveRowsMax } from '../../api/interactions.ts';
import { queryText } from '../../api/request.ts';
import { countOf, formatNumber } from '../../format/format.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { More } from '../../parts/more.tsx';
import { Empty, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Terminal } from '../../parts/terminal.tsx';
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
          <InteractionFilters />
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

function isFiltered(filter: Filter): boolean {
  return Object.values(filter).some((value) => value !== undefined);
}

function Stored({ filter }: { readonly filter: Filter }) {
  const list = useInfiniteQuery(interactionPagesQuery(filter));
  return (
    <section className="card">
      <h2 className="visually-hidden">List</h2>
      <Answer query={list} what="The interactions" rows={8}>
        {({ pages }) => {
          const rows = pages.flatMap(({ interactions }) => interactions);
          if (rows.length === 0 && !list.hasNextPage) return <NoInteractions filtered={isFiltered(filter)} />;
          return (
            <>
              {rows.length === 0 ? (
                <p>None found yet. Each search stops after one second; Load more continues it.</p>
              ) : (
                <InteractionTable rows={rows} />
              )}
              <More query={list} shown={countOf(rows.length, 'interaction')} />
            </>
          );
        }}
      </Answer>
    </section>
  );
}

/** Asks again every few seconds, as long as the page is visible. */
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
  if (filtered)
    return (
      <Empty title="No interaction matches these filters.">
        <p>
          <Link to="/interactions">Show all interactions</Link>
        </p>
      </Empty>
    );
  return (
    <Empty title="No interactions have been recorded yet.">
      <p>
        Websites and apps record them one by one with <code>POST /user-interactions</code>. Files of them can
        be uploaded with <code>intake upload interactions.csv</code>.
      </p>
    </Empty>
  );
}
