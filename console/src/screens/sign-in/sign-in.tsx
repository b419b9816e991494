import { useRouter } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { ApiError } from '../../api/request.ts';
import { linkToken } from '../../frame/link-token.ts';
import { SecretForm, SignInPage, useSignIn } from '../../frame/sign-in.tsx';
import { Failure } from '../../parts/failure.tsx';
import { Question } from '../../parts/question.tsx';
import { Line } from '../../parts/terminal.tsx';

export function SignIn() {
  const signingIn = useSignIn();
  const { mutate } = signingIn;
  const router = useRouter();
  const [link, setLink] = useState<string>();
  const byLink = link !== undefined;
  useEffect(() => {
    const given = linkToken();
    if (given === undefined) return;
    setLink(given);
    mutate({ link: given });
  }, [mutate]);
  if (byLink && isOfOther(signingIn.error))
    return (
      <SignInPage name="console">
        <Question
          title="Replace your session?"
          action="Sign out and open the link"
          harmless
          onYes={() => mutate({ link, replace: true })}
          onNo={() => void router.navigate({ to: '/', replace: true })}
        >
          <p>{signingIn.error.message}</p>
          <p>Somebody else may have sent you this link. Open it only if you expected it.</p>
        </Question>
      </SignInPage>
    );
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
            setLink(undefined);
            mutate({ key });
          }}
        />
      )}
    </SignInPage>
  );
}

function isOfOther(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === 'other_organisation';
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
          dev keeps its keys in the files .intake/key and .intake/privacy-key.
        </p>
      </details>
    </>
  );
}
