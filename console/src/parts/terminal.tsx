import { useState } from 'react';
import { shellWord } from '../format/shell-word.ts';

export interface TerminalCall {
  /** Describes the call, if the screen offers several. */
  readonly what?: string;
  /** The API path and query, such as /v1/data?limit=10. */
  readonly path: string;
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The body as JSON text. */
  readonly body?: string;
  /** The equivalent intake or intake-server command, if there is one. */
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

/** Shows how to do the same without the console. The key or token always appears as a shell variable. */
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

/** Shows a line to copy. Browsers allow access to the clipboard only over HTTPS and on localhost. */
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
