import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useRef, useState } from 'react';
import { countOf } from '../../../format/format.ts';
import { Answer } from '../../../parts/answer.tsx';
import { Failure } from '../../../parts/failure.tsx';
import { More } from '../../../parts/more.tsx';
import { type KeyFilter, keyPagesQuery, revokeKey } from '../../api/keys.ts';
import { readAgain } from '../../api/read-again.ts';
import type { IssuedKey, Key } from '../../api/types.ts';
import { useMayChange } from '../../signed-in.tsx';
import { IssuedSecret } from './issued-secret.tsx';
import { usefulFirst } from './key-state.ts';
import { KeyTable } from './key-table.tsx';
import { RevokeKey } from './revoke-key.tsx';
import { RotateKey } from './rotate-key.tsx';

interface KeyListProps {
  readonly filter: KeyFilter;
  /** Whether the list contains several organisations' keys. */
  readonly ofAll: boolean;
  /** Whether the organisation is deleted. Its keys can then only be revoked. */
  readonly ofDeleted?: boolean;
  /** The content that is shown if the list is empty. */
  readonly empty: ReactNode;
}

/** Lists keys, with buttons to rotate or revoke each key. */
export function KeyList({ filter, ofAll, ofDeleted = false, empty }: KeyListProps) {
  const mayChange = useMayChange();
  const client = useQueryClient();
  const list = useInfiniteQuery(keyPagesQuery(filter));
  const heading = useRef<HTMLHeadingElement>(null);
  const [rotated, setRotated] = useState<Key>();
  const [revoked, setRevoked] = useState<Key>();
  const [issued, setIssued] = useState<IssuedKey>();
  const revoking = useMutation({
    mutationFn: ({ key_id }: Key) => revokeKey(key_id),
    onSuccess: async () => {
      await readAgain(client);
      // The button that had the focus is gone, so focus the heading.
      heading.current?.focus();
    },
  });
  return (
    <>
      {issued && <IssuedSecret issued={issued} onDone={() => setIssued(undefined)} />}
      <section className="card">
        <h2 ref={heading} tabIndex={-1}>
          Keys
        </h2>
        {revoking.error && <Failure error={revoking.error} what="The key could not be revoked" />}
        <Answer query={list} what="The keys" rows={6}>
          {({ pages }) => {
            const keys = pages.flatMap((page) => page.keys);
            if (keys.length === 0) return empty;
            return (
              <>
                <KeyTable
                  keys={ofAll ? keys : usefulFirst(keys, Date.now())}
                  ofAll={ofAll}
                  ofDeleted={ofDeleted}
                  onRotate={mayChange ? setRotated : undefined}
                  onRevoke={setRevoked}
                />
                <More query={list} shown={countOf(keys.length, 'key')} />
              </>
            );
          }}
        </Answer>
      </section>
      {rotated && (
        <RotateKey
          rotated={rotated}
          onIssued={(successor) => {
            setRotated(undefined);
            setIssued(successor);
          }}
          onClose={() => setRotated(undefined)}
        />
      )}
      {revoked && (
        <RevokeKey
          revoked={revoked}
          onNo={() => setRevoked(undefined)}
          onYes={() => {
            setRevoked(undefined);
            revoking.mutate(revoked);
          }}
        />
      )}
    </>
  );
}
