import { shellWord } from '../../../format/shell-word.ts';
import { Time } from '../../../format/time.tsx';
import { Facts } from '../../../parts/facts.tsx';
import { Terminal, type TerminalCall } from '../../../parts/terminal.tsx';
import { lakePath, organisationPath } from '../../api/organisations.ts';
import type { Organisation } from '../../api/types.ts';
import { OrganisationState } from '../../parts/organisation-state.tsx';
import { Changing } from '../../signed-in.tsx';
import { Lake } from './lake.tsx';
import { DeleteOrRestore } from './lifetime/delete.tsx';
import { Retention } from './lifetime/retention.tsx';
import { Suspend } from './lifetime/suspend.tsx';
import { Limits } from './limits/limits.tsx';
import { useOrganisation } from './one-organisation.ts';
import { Rename } from './rename.tsx';
import { Switch } from './switch.tsx';
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
      <Report organisation={organisation} />
      <TrafficNow organisation={organisation} />
      <Terminal calls={callsFor(organisation.slug)} />
    </>
  );
}

function Report({ organisation }: { readonly organisation: Organisation }) {
  return (
    <section className="card">
      <h2>Report on recommendations</h2>
      <p className="hint">What recommendations earn, which its keys can read.</p>
      <Facts facts={[['State', organisation.recommendations_report ? 'on' : 'off']]} />
      <Switch
        organisation={organisation}
        field="recommendations_report"
        what="report"
        consequences={{
          on: 'Everything stored so far is counted first. Counting an interaction costs more than storing it.',
          off: 'Nothing more is counted, and the report answers 409. What was counted is kept.',
        }}
      />
    </section>
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
    ...(
      [
        ['lake', 'lake'],
        ['report', 'recommendations_report'],
      ] as const
    ).flatMap(([what, field]) =>
      (['on', 'off'] as const).map((state) => ({
        what: `Switch its ${what} ${state}`,
        path,
        method: 'PATCH' as const,
        body: `{"${field}": ${state === 'on'}}`,
        intake: `${command(`set-${what}`)} ${state}`,
      })),
    ),
  ];
}
