import { useState } from 'react';
import { queryText } from '../../../api/request.ts';
import { shellOptions } from '../../../format/shell-word.ts';
import { Time } from '../../../format/time.tsx';
import { Empty } from '../../../parts/notices.tsx';
import { Press } from '../../../parts/press.tsx';
import { Terminal } from '../../../parts/terminal.tsx';
import { keysPath } from '../../api/keys.ts';
import type { IssuedKey } from '../../api/types.ts';
import { Secret } from '../../parts/secret.tsx';
import { Changing } from '../../signed-in.tsx';
import { IssueKey } from '../keys/issue-key.tsx';
import { IssuedSecret } from '../keys/issued-secret.tsx';
import { KeyList } from '../keys/key-list.tsx';
import { type MadeLink, MakeLink } from '../keys/make-link.tsx';
import { useOrganisation } from './one-organisation.ts';

export function OwnKeysScreen() {
  const { slug, deleted_at } = useOrganisation();
  const isDeleted = deleted_at !== null;
  const [open, setOpen] = useState<'key' | 'link'>();
  const [issued, setIssued] = useState<IssuedKey>();
  const [link, setLink] = useState<MadeLink>();
  const close = () => setOpen(undefined);
  return (
    <>
      <Changing what="Issuing, rotating and revoking keys, and making links,">
        <div className="buttons">
          <Press className="primary" blocked={isDeleted} onClick={() => setOpen('key')}>
            Issue a key
          </Press>
          <Press blocked={isDeleted} onClick={() => setOpen('link')}>
            Make a console link
          </Press>
        </div>
      </Changing>
      {issued && <IssuedSecret issued={issued} onDone={() => setIssued(undefined)} />}
      {link && <LinkSecret slug={slug} link={link} onDone={() => setLink(undefined)} />}
      <KeyList
        filter={{ organisation: slug }}
        ofAll={false}
        ofDeleted={isDeleted}
        empty={
          <Empty title="No key has been issued for this organisation.">
            {!isDeleted && (
              <p>Issue one with the button above, and pass it to the organisation over a safe channel.</p>
            )}
          </Empty>
        }
      />
      <Terminal
        calls={[
          {
            path: `${keysPath}${queryText({ organisation: slug })}`,
            intake: `intake-server keys list${shellOptions({ organisation: slug })}`,
          },
        ]}
      />
      {open === 'key' && (
        <IssueKey
          slug={slug}
          onIssued={(key) => {
            close();
            setIssued(key);
          }}
          onClose={close}
        />
      )}
      {open === 'link' && (
        <MakeLink
          slug={slug}
          onMade={(made) => {
            close();
            setLink(made);
          }}
          onClose={close}
        />
      )}
    </>
  );
}

interface LinkSecretProps {
  readonly slug: string;
  readonly link: MadeLink;
  readonly onDone: () => void;
}

function LinkSecret({ slug, link: { address, path, key_id, expires_at }, onDone }: LinkSecretProps) {
  return (
    <Secret title={`A link to the console of ${slug}`} secret={address + path} onDone={onDone}>
      <p>
        {address === '' && 'Append it to the address of the service. '}
        It works once: the first person to open it is signed in. Access ends at <Time value={expires_at} />,
        or when the key <code>{key_id}</code> is revoked.
      </p>
    </Secret>
  );
}
