import { Facts } from '../../../../parts/facts.tsx';
import { quotaNames } from '../../../api/organisations.ts';
import type { Organisation } from '../../../api/types.ts';
import { limitTitles, quotaUseOf } from '../../../parts/limits.ts';
import { QuotaBar } from '../../../parts/quota-bar.tsx';

interface QuotasProps {
  readonly organisation: Organisation;
}

/** Shows an organisation's quotas and their usage. */
export function Quotas({ organisation }: QuotasProps) {
  const tones = quotaNames.map((name) => quotaUseOf(organisation, name)?.tone);
  return (
    <>
      <h3>Quotas</h3>
      <p className="hint">How much it may store, interactions included. Measured twice a minute.</p>
      <Facts
        facts={quotaNames.map((name) => [
          limitTitles[name],
          <QuotaBar key={name} organisation={organisation} name={name} />,
        ])}
      />
      {tones.includes('bad') ? (
        <div className="notice notice-bad">
          <p className="notice-title">A quota is used up.</p>
          <p>Uploads and interactions are answered with 403 until data is removed or the quota is raised.</p>
        </div>
      ) : (
        tones.includes('warn') && (
          <div className="notice notice-warn">
            <p className="notice-title">A quota is almost used up.</p>
            <p>
              When it is used up, uploads and interactions are answered with 403. Above 80 %, every answer
              contains a warning.
            </p>
          </div>
        )
      )}
    </>
  );
}
