import { shellWord } from '../../../format/shell-word.ts';
import { Time } from '../../../format/time.tsx';
import { Facts } from '../../../parts/facts.tsx';
import { Terminal, type TerminalCall } from '../../../parts/terminal.tsx';
import { lakePath, organisationPath } from '../../api/organisations.ts';
import { OrganisationState } from '../../parts/organisation-state.tsx';
import { Changing } from '../../signed-in.tsx';
import { Lake } from './lake.tsx';
import { DeleteOrRestore } from './lifetime/delete.tsx';
import { Retention } from './lifetime/retention.tsx';
import { Suspend } from './lifetime/suspend.tsx';
import { Limits } from './limits/limits.tsx';
import { useOrganisation } from './one-organisation.ts';
import { Rename } from './rename.tsx';
import { TrafficNow } from './traffic-now.tsx';

export function SummaryScreen() {
  const organisation = useOrganisation();
  return (
    <>
      <section className="card">
        <h2>Organisation</h2>
        <Facts
          facts={[
            ['Name', organisation.name],
            ['State', <OrganisationState key="state" organisation={organisation} />],
            ['Created', <Time key="created" value={organisation.created_at} />],
            [
              'Organisation id',
              <code key="id" className="id">
                {organisation.organisation_id}
              </code>,
            ],
            ['Report on recommendations', organisation.recommendations_report ? 'on' : 'off'],
          ]}
        />
        <Changing what="Renaming, suspending, deleting or restoring the organisation">
          <div className="buttons">
            <Rename organisation={organisation} />
            <Suspend organisation={organisation} />
            <DeleteOrRestore organisation={organisation} />
          </div>
        </Changing>
      </section>
      <Limits organisation={organisation} />
      <Retention organisation={organisation} />
      <Lake organisation={organisation} />
      <TrafficNow organisation={organisation} />
      <Terminal calls={callsFor(organisation.slug)} />
    </>
  );
}

function callsFor(slug: string): readonly TerminalCall[] {
  const path = organisationPath(slug);
  const command = (action: string) => `intake-server organisations ${action} ${shellWord(slug)}`;
  return [
    { what: 'Read', path, intake: command('limit') },
    { what: 'Suspend', path, method: 'PATCH', body: '{"suspended": true}', intake: command('suspend') },
    { what: 'Resume', path, method: 'PATCH', body: '{"suspended": false}', intake: command('resume') },
    { what: 'Show the progress of its lake', path: lakePath(slug) },
    ...(['on', 'off'] as const).map((state) => ({
      what: `Switch its lake ${state}`,
      path,
      method: 'PATCH' as const,
      body: `{"lake": ${state === 'on'}}`,
      intake: `${command('set-lake')} ${state}`,
    })),
  ];
}
