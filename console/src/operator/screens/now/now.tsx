import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { queryText } from '../../../api/request.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Filters, SelectFilter } from '../../../parts/filters.tsx';
import { Empty } from '../../../parts/notices.tsx';
import { Page } from '../../../parts/page.tsx';
import { Terminal } from '../../../parts/terminal.tsx';
import { busiestQuery, refreshSeconds, stateQuery, topPath } from '../../api/activity.ts';
import type { BusiestOrganisations, Traffic } from '../../api/types.ts';
import { Problems } from '../processes/problems.tsx';
import { BusiestTable } from './busiest-table.tsx';
import { defaultMeasure, defaultMinutes, measureNames, measures, minuteChoices } from './measures.ts';

const route = getRouteApi('/frame/');

const organisationsShown = 20;

/** Returns the sort order and the number of minutes from the URL. Unknown values fall back to the default. */
function useView() {
  const search = route.useSearch();
  const by = measureNames.find((name) => name === search.by) ?? defaultMeasure;
  const minutes = minuteChoices.find((choice) => String(choice) === search.minutes) ?? defaultMinutes;
  return { by, minutes };
}

export function NowScreen() {
  const { by, minutes } = useView();
  const busiest = useQuery({
    ...busiestQuery({ by, minutes, limit: organisationsShown }),
    placeholderData: keepPreviousData,
  });
  return (
    <Page title="Now" lead="Which organisations keep the service busy, busiest first.">
      <ServiceProblems />
      <NowFilters />
      <section className="card">
        <h2>Busiest organisations</h2>
        <Answer query={busiest} what="The busiest organisations" rows={8}>
          {(answer) => <Shown answer={answer} by={by} />}
        </Answer>
      </section>
      <Terminal
        calls={[
          {
            path: `${topPath}${queryText({ by, minutes, limit: organisationsShown })}`,
            intake: `intake-server top --by ${by} --minutes ${minutes} --limit ${organisationsShown}`,
          },
        ]}
      />
    </Page>
  );
}

/** Shows nothing if the state could not be read, because the Service screen reports that. */
function ServiceProblems() {
  const { data, dataUpdatedAt } = useQuery(stateQuery);
  if (data === undefined) return null;
  return (
    <Problems state={data} nowMs={dataUpdatedAt} none={null}>
      <p>
        <Link to="/service">See the state of the service</Link>
      </p>
    </Problems>
  );
}

function NowFilters() {
  const { by, minutes } = useView();
  const navigate = route.useNavigate();
  const change = (changed: Partial<Record<'by' | 'minutes', string | undefined>>) =>
    navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  const others = measureNames.filter((name) => name !== defaultMeasure);
  return (
    <Filters>
      <SelectFilter
        label="Order by"
        value={by === defaultMeasure ? undefined : by}
        onChange={(value) => change({ by: value })}
        any={measures[defaultMeasure].title}
        choices={others.map((value) => ({ value, text: measures[value].title }))}
      />
      <SelectFilter
        label="In the last"
        value={minutes === defaultMinutes ? undefined : String(minutes)}
        onChange={(value) => change({ minutes: value })}
        any={minuteText(defaultMinutes)}
        choices={minuteChoices
          .filter((choice) => choice !== defaultMinutes)
          .map((choice) => ({ value: String(choice), text: minuteText(choice) }))}
      />
    </Filters>
  );
}

function minuteText(minutes: number): string {
  return minutes === 1 ? 'minute' : `${minutes} minutes`;
}

function Shown({ answer, by }: { readonly answer: BusiestOrganisations; readonly by: keyof Traffic }) {
  const { from, to, organisations } = answer;
  return (
    <>
      <p className="hint">
        <Time value={from} /> to <Time value={to} />. Processes report every minute; this page refreshes every{' '}
        {refreshSeconds} seconds while it is visible.
      </p>
      {organisations.length === 0 ? (
        <Empty title={`No ${measures[by].title.toLowerCase()} in this period.`}>
          <p>
            Choose a longer period or another order, or{' '}
            <Link to="/organisations">go to the organisations</Link>.
          </p>
        </Empty>
      ) : (
        <BusiestTable organisations={organisations} by={by} />
      )}
    </>
  );
}
