import { useState } from 'react';
import { shellWord } from '../format/shell-word.ts';

export interface TerminalCall {
  /** What it does, if the screen can do several things. */
  readonly what?: string;
  /** Path and query of the API, such as /v1/data?limit=10. */
  readonly path: string;
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** JSON text of the body. */
  readonly body?: string;
  /** The same with the intake or intake-server command, if it can. */
  readonly intake?: string;
}

function curlLine({ path, method = 'GET', body }: TerminalCall): string {
  const verb = method === 'GET' || (method === 'POST' && body !== undefined) ? '' : `-X ${method} `;
  const secret = path.startsWith('/admin/') ? 'TOKEN' : 'INTAKE_KEY';
  const lines = [
    `curl -sS ${verb}"${location.origin}${path}"`,
    `  -H "Authorization: Bearer $${secret}"${body === undefined ? '' : " -H 'Content-Type: application/json'"}`,
  ];
  if (body !== undefined) lines.push(`  -d ${shellWord(body)}`);
  return lines.join(' \\\n');
}

/** How to do the same without the console. The key or the token is always a variable. */
export function Terminal({ calls }: { readonly calls: readonly TerminalCall[] }) {
  return (
    <details className="terminal">
      <summary>From a terminal</summary>
      {calls.map((call) => (
        <div key={`${call.method} ${call.path} ${call.body}`} className="terminal-call">
          {call.what && <p>{call.what}</p>}
          <Line text={curlLine(call)} />
          {call.intake && <Line text={call.intake} />}
        </div>
      ))}
    </details>
  );
}

/** A line to be copied. Browsers offer the clipboard only over HTTPS and on the machine itself. */
export function Line({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <div className="line">
      <pre>
        <code>{text}</code>
      </pre>
      {isSecureContext && (
        <button type="button" className="quiet" onClick={copy}>
          {copied ? 'Copied' : 'Copy'}
        </button>
      )}
      <span className="visually-hidden" role="status">
        {copied ? 'Copied to the clipboard' : ''}
      </span>
    </div>
  );
}
