import { useQuery } from '@tanstack/react-query';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Facts } from '../../../parts/facts.tsx';
import { Page } from '../../../parts/page.tsx';
import { Terminal, type TerminalCall } from '../../../parts/terminal.tsx';
import { refreshSeconds, statePath, stateQuery } from '../../api/activity.ts';
import type { ServiceState } from '../../api/types.ts';
import { useSession } from '../../signed-in.tsx';
import { Problems } from './problems.tsx';
import { Chores, Nodes, NoLeader, Partitions, Processes, Waiting } from './state-tables.tsx';

export function ProcessesScreen() {
  const state = useQuery(stateQuery);
  return (
    <Page
      title="Service"
      lead={`Processes, maintenance, waiting work and partitions. Refreshes every ${refreshSeconds} seconds while this page is visible.`}
    >
      <Answer query={state} what="The state of the service" rows={8}>
        {(answer) => <State state={answer} readMs={state.dataUpdatedAt} />}
      </Answer>
      <ThisSession />
      <Terminal calls={callsFor(state.data)} />
    </Page>
  );
}

/**
 * Returns the calls that the terminal section shows. There is a command that shows a cluster's nodes, but none that shows
 * the processes.
 */
function callsFor(state: ServiceState | undefined): readonly TerminalCall[] {
  const isCluster = state !== undefined && state.nodes !== null;
  return [{ path: statePath, ...(isCluster ? { intake: 'intake-server cluster' } : {}) }];
}

function State({ state, readMs }: { readonly state: ServiceState; readonly readMs: number }) {
  return (
    <>
      <Problems
        state={state}
        nowMs={readMs}
        none={<p className="notice notice-good">Everything is in order.</p>}
      />
      <section className="card">
        <h2>Processes</h2>
        <Processes processes={state.processes} nowMs={readMs} />
      </section>
      <section className="card">
        <h2>Waiting work</h2>
        <Waiting waiting={state.waiting} readMs={readMs} />
      </section>
      <section className="card">
        <h2>Maintenance</h2>
        <NoLeader processes={state.processes} nowMs={readMs} />
        <Chores chores={state.maintenance} />
      </section>
      <section className="card">
        <h2>Partitions</h2>
        <Partitions tables={state.partitions} nowMs={readMs} />
      </section>
      <section className="card">
        <h2>Cluster</h2>
        <Nodes nodes={state.nodes} />
      </section>
    </>
  );
}

function ThisSession() {
  const { token, expires_at } = useSession();
  return (
    <section className="card">
      <h2>This session</h2>
      <Facts
        facts={[
          ['Token', <code key="name">{token.name}</code>],
          [
            'Access',
            token.role === 'full' ? 'read and change everything' : 'read everything, change nothing',
          ],
          ['Token expires', <Time key="expires" value={token.expires_at} />],
          ['Session ends', <Time key="ends" value={expires_at} />],
        ]}
      />
    </section>
  );
}
