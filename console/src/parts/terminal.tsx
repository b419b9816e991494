import { useState } from 'react';

interface TerminalProps {
  /** Path and query of the API, such as /v1/data?limit=10. */
  readonly path: string;
  readonly method?: 'GET' | 'POST' | 'DELETE';
  /** JSON text of the body. */
  readonly body?: string;
  /** The same with the intake command, if it can. */
  readonly intake?: string;
}

function curlLine({ path, method = 'GET', body }: TerminalProps): string {
  const verb = method === 'GET' || (method === 'POST' && body !== undefined) ? '' : `-X ${method} `;
  const lines = [
    `curl -sS ${verb}"${location.origin}${path}"`,
    `  -H "Authorization: Bearer $INTAKE_KEY"${body === undefined ? '' : " -H 'Content-Type: application/json'"}`,
  ];
  if (body !== undefined) lines.push(`  -d '${body}'`);
  return lines.join(' \\\n');
}

/** How to do the same without the console. The key is always a variable. */
export function Terminal(props: TerminalProps) {
  return (
    <details className="terminal">
      <summary>The same from a terminal</summary>
      <Line text={curlLine(props)} />
      {props.intake && <Line text={props.intake} />}
    </details>
  );
}

/** A line to be copied. */
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
      <button type="button" className="quiet" onClick={copy}>
        {copied ? 'Copied' : 'Copy'}
        <span className="visually-hidden" role="status">
          {copied ? ' to the clipboard' : ''}
        </span>
      </button>
    </div>
  );
}
