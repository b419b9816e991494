import { useQuery } from '@tanstack/react-query';
import { formatDuration } from '../../../format/format.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Facts } from '../../../parts/facts.tsx';
import { lakeQuery } from '../../api/organisations.ts';
import type { LakeState, Organisation } from '../../api/types.ts';
import { Switch } from './switch.tsx';

const stateTexts: Readonly<Record<LakeState['state'], string>> = {
  off: 'off',
  waiting: 'on; no process is writing it yet',
  copying: 'copying the stored data',
  following: 'on',
};

/** Shows whether the organisation's data is also written to files, and how current the files are. */
export function Lake({ organisation }: { readonly organisation: Organisation }) {
  const lake = useQuery(lakeQuery(organisation.slug));
  return (
    <section className="card">
      <h2>Lake</h2>
      <p className="hint">
        The data as files for analysis, written by <code>intake-server lake</code>.
      </p>
      <Answer query={lake} what="The state of the lake" rows={1}>
        {({ state, as_of, lag_seconds }) => (
          <Facts
            facts={[
              ['State', stateTexts[state]],
              ...(state === 'following'
                ? ([
                    ['Last written', <Time key="as_of" value={as_of} />],
                    ['Waiting since', lag_seconds ? formatDuration(lag_seconds * 1_000) : 'nothing waits'],
                  ] as const)
                : []),
            ]}
          />
        )}
      </Answer>
      <Switch
        organisation={organisation}
        field="lake"
        what="lake"
        consequences={{
          on: 'The stored data is copied first, and then new data is added. Nothing happens unless a process runs intake-server lake.',
          off: 'Its files are deleted. When it is switched on again, everything is copied again.',
        }}
      />
    </section>
  );
}
