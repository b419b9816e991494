import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { formatDuration } from '../../../format/format.ts';
import { Time } from '../../../format/time.tsx';
import { Answer } from '../../../parts/answer.tsx';
import { Facts } from '../../../parts/facts.tsx';
import { Failure } from '../../../parts/failure.tsx';
import { Press } from '../../../parts/press.tsx';
import { Question } from '../../../parts/question.tsx';
import { lakeQuery } from '../../api/organisations.ts';
import type { LakeState, Organisation } from '../../api/types.ts';
import { Changing } from '../../signed-in.tsx';
import { useChange } from './use-change.ts';

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
      <Changing what="Switching the lake on or off">
        <LakeSwitch organisation={organisation} />
      </Changing>
    </section>
  );
}

function LakeSwitch({ organisation }: { readonly organisation: Organisation }) {
  const { slug, lake, deleted_at } = organisation;
  const [asking, setAsking] = useState(false);
  const changing = useChange(slug, () => {});
  const action = lake ? 'Switch the lake off' : 'Switch the lake on';
  return (
    <>
      <div className="buttons">
        <Press blocked={changing.isPending || deleted_at !== null} onClick={() => setAsking(true)}>
          {action}
        </Press>
      </div>
      {changing.error && <Failure error={changing.error} what={`${action} failed`} />}
      {asking && (
        <Question
          title={`${action}?`}
          action={`${action} for ${slug}`}
          harmless={!lake}
          onNo={() => setAsking(false)}
          onYes={() => {
            setAsking(false);
            changing.mutate({ lake: !lake });
          }}
        >
          <p>
            {lake
              ? 'Its files are deleted. When it is switched on again, everything is copied again.'
              : 'The stored data is copied first, and then new data is added. Nothing happens unless a process runs intake-server lake.'}
          </p>
        </Question>
      )}
    </>
  );
}
