import { Time } from '../../../format/time.tsx';
import type { IssuedKey } from '../../api/types.ts';
import { Secret } from '../../parts/secret.tsx';

/** Shows a newly issued key, which may replace another key. */
export function IssuedSecret({
  issued,
  onDone,
}: {
  readonly issued: IssuedKey;
  readonly onDone: () => void;
}) {
  const { key_id, organisation, expires_at, successor_of, key } = issued;
  return (
    <Secret title={`The new key ${key_id} of ${organisation}`} secret={key} onDone={onDone}>
      <p>
        {successor_of !== null && (
          <>
            It replaces <code>{successor_of}</code>.{' '}
          </>
        )}
        {expires_at === null ? (
          'It never expires.'
        ) : (
          <>
            It expires <Time value={expires_at} />.
          </>
        )}
      </p>
    </Secret>
  );
}
