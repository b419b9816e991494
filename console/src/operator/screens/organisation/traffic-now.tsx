import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Answer } from '../../../parts/answer.tsx';
import { busiestQuery } from '../../api/activity.ts';
import type { Organisation } from '../../api/types.ts';
import { defaultMeasure, defaultMinutes, measureNames, measures } from '../now/measures.ts';

/** The maximum number of organisations that the service returns. */
const organisationsMax = 50;

/**
 * Shows the organisation's current traffic. The service returns only the busiest organisations. If it returns fewer than the
 * maximum, all others had no requests.
 */
export function TrafficNow({ organisation }: { readonly organisation: Organisation }) {
  const busiest = useQuery(
    busiestQuery({ by: defaultMeasure, minutes: defaultMinutes, limit: organisationsMax }),
  );
  return (
    <section className="card">
      <h2>Traffic in the last {defaultMinutes} minutes</h2>
      <Answer query={busiest} what="The traffic" rows={2}>
        {({ organisations }) => {
          const own = organisations.find(
            ({ organisation_id }) => organisation_id === organisation.organisation_id,
          );
          if (own === undefined && organisations.length < organisationsMax)
            return <p className="muted">No requests.</p>;
          if (own === undefined)
            return (
              <p className="muted">
                Not among the {organisationsMax} organisations with the most requests.{' '}
                <Link to="/">See who is busy now</Link>.
              </p>
            );
          return (
            <dl className="counts counts-alone">
              {measureNames.map((name) => (
                <div key={name}>
                  <dt>{measures[name].title}</dt>
                  <dd>{measures[name].format(own[name])}</dd>
                </div>
              ))}
            </dl>
          );
        }}
      </Answer>
    </section>
  );
}
