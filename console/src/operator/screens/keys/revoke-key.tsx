import { Question } from '../../../parts/question.tsx';
import type { Key } from '../../api/types.ts';

interface RevokeKeyProps {
  readonly revoked: Key;
  readonly onYes: () => void;
  readonly onNo: () => void;
}

export function RevokeKey({ revoked: { key_id, organisation, label }, onYes, onNo }: RevokeKeyProps) {
  return (
    <Question title={`Revoke the key ${key_id}?`} action={`Revoke ${key_id}`} onYes={onYes} onNo={onNo}>
      <p>
        It belongs to <strong>{organisation}</strong>
        {label !== null && (
          <>
            {' '}
            and is labelled <strong>{label}</strong>
          </>
        )}
        . Within 5 seconds every process answers it with 401, and its sessions in the console end. This cannot
        be undone.
      </p>
    </Question>
  );
}
