import { useEffect, useState } from 'react';
import { linkToken } from '../../frame/link-token.ts';
import { SecretForm, SignInPage, useSignIn } from '../../frame/sign-in.tsx';
import { Failure } from '../../parts/failure.tsx';
import { Line } from '../../parts/terminal.tsx';

export function SignIn() {
  const signingIn = useSignIn();
  const { mutate } = signingIn;
  const [byLink, setByLink] = useState(false);
  useEffect(() => {
    const link = linkToken();
    if (link === undefined) return;
    setByLink(true);
    mutate({ link });
  }, [mutate]);
  return (
    <SignInPage name="console">
      {signingIn.error && (
        <Failure error={signingIn.error} what={byLink ? 'The link could not be used' : 'Signing in failed'} />
      )}
      {byLink && signingIn.isPending ? (
        <p role="status">Signing in with the link…</p>
      ) : (
        <KeyForm
          pending={signingIn.isPending}
          onKey={(key) => {
            setByLink(false);
            mutate({ key });
          }}
        />
      )}
    </SignInPage>
  );
}

function KeyForm({ pending, onKey }: { readonly pending: boolean; readonly onKey: (key: string) => void }) {
  return (
    <>
      <SecretForm
        label="API key"
        hint={
          <>
            A key starts with <code>intake_</code>.
          </>
        }
        pending={pending}
        onSecret={onKey}
      />
      <details className="terminal">
        <summary>Where to get a key</summary>
        <p>
          The operator of the service issues keys. A key belongs to one organisation and lists what it may do:
        </p>
        <Line text="intake-server keys issue --organisation <name>" />
        <p>
          The operator can also make a link that signs you in without a key. A service started with npm run
          dev keeps its key in the file .intake/key.
        </p>
      </details>
    </>
  );
}
