import { SecretForm, SignInPage, useSignIn } from '../../../frame/sign-in.tsx';
import { Failure } from '../../../parts/failure.tsx';
import { Line } from '../../../parts/terminal.tsx';

export function SignIn() {
  const signingIn = useSignIn();
  return (
    <SignInPage name="operator">
      {signingIn.error && <Failure error={signingIn.error} what="Signing in failed" />}
      <SecretForm
        label="Admin token"
        hint={
          <>
            A token starts with <code>intake_admin_</code>.
          </>
        }
        pending={signingIn.isPending}
        onSecret={(token) => signingIn.mutate({ token })}
      />
      <details className="terminal">
        <summary>Where to get a token</summary>
        <p>
          Tokens are issued on the command line, with access to the database. Each person needs a separate
          token, because its name is the actor in the audit log.
        </p>
        <Line text="intake-server tokens issue <name>" />
        <p>
          A token with --read-only cannot change anything. With --expires 90d, a token expires after 90 days.
        </p>
      </details>
      <p className="hint">Organisations sign in at the address of the service, with an API key or a link.</p>
    </SignInPage>
  );
}
