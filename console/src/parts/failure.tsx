import type { ReactNode } from 'react';
import { ApiError } from '../api/request.ts';

interface FailureProps {
  readonly error: unknown;
  /** Describes the failed action, such as "The uploads could not be read". */
  readonly what: string;
  readonly retry?: (() => void) | undefined;
  /** What else the user has to know. */
  readonly children?: ReactNode;
}

/**
 * Shows a failed request with its code, message and request id, so that the user can act on it or report it. There is no
 * retry button for an invalid request, because it would fail again.
 */
export function Failure({ error, what, retry, children }: FailureProps) {
  const failed = error instanceof ApiError ? error : undefined;
  const details = failed?.details ?? [];
  const message = error instanceof Error ? error.message : String(error);
  return (
    <div className="notice notice-bad" role="alert">
      <p className="notice-title">{what}</p>
      {details.length === 0 ? (
        <p>{message}</p>
      ) : (
        <ul>
          {details.map(({ field, code, message: detail }) => (
            <li key={`${field} ${code}`}>
              <code>{field}</code> {detail}
            </li>
          ))}
        </ul>
      )}
      {children}
      <p className="notice-facts">
        {failed && (
          <>
            Code <code>{failed.code}</code>
          </>
        )}
        {failed?.requestId && (
          <>
            {' · '}request <code className="id">{failed.requestId}</code>
          </>
        )}
      </p>
      {retry && failed?.status !== 400 && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
