import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { type RejectionFilter, rejectionPagesQuery } from '../../api/rejections.ts';
import type { Rejection } from '../../api/types.ts';
import { formatNumber, inConsoleWords } from '../../format/format.ts';
import { isResourceType } from '../../format/personal.ts';
import { Time } from '../../format/time.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { Pages } from '../../parts/more.tsx';
import { NotPermitted } from '../../parts/notices.tsx';
import { Correct } from './correct.tsx';
import { isObject } from './count-missing-ids.ts';

export function RejectionList({ filter }: { readonly filter: RejectionFilter }) {
  const may = usePermits();
  const { type } = filter;
  const list = useInfiniteQuery(rejectionPagesQuery(filter));
  const [corrected, setCorrected] = useState<Rejection>();
  const heading = useRef<HTMLHeadingElement>(null);
  const close = () => {
    setCorrected(undefined);
    // If the record was stored, the button that opened the form is gone, so focus the heading.
    requestAnimationFrame(() => {
      if (document.activeElement === document.body) heading.current?.focus();
    });
  };
  return (
    <section className="card">
      <h2 ref={heading} tabIndex={-1}>
        Rejected records
      </h2>
      {type !== undefined && isResourceType(type) && !may(`data:write:${type}`) && (
        <NotPermitted permission={`data:write:${type}`} what="Correcting these records" />
      )}
      <Pages
        query={list}
        what="The rejections"
        one="rejection"
        rowsOf={({ rejections }) => rejections}
        empty={<p className="muted">None are left.</p>}
      >
        {(rejections) => (
          <ul className="records">
            {rejections.map((rejection) => (
              <li key={rejection.rejection_id}>
                <RejectionItem rejection={rejection} onCorrect={() => setCorrected(rejection)} />
              </li>
            ))}
          </ul>
        )}
      </Pages>
      {corrected && <Correct rejection={corrected} onClose={close} />}
    </section>
  );
}

function RejectionItem({
  rejection,
  onCorrect,
}: {
  readonly rejection: Rejection;
  readonly onCorrect: () => void;
}) {
  const may = usePermits();
  const { type, id, index, request_id, rejected, errors, record } = rejection;
  const obstacle = obstacleOf(rejection);
  return (
    <>
      <div className="record-head">
        <code className="id">{id ?? 'no valid id'}</code>
        <span className="muted">
          <Time value={rejected} />, index {formatNumber(index)} of{' '}
          <Link to="/uploads/$requestId" params={{ requestId: request_id }}>
            its upload
          </Link>
        </span>
        {obstacle === undefined && may(`data:write:${type}`) && (
          <button type="button" onClick={onCorrect}>
            Correct
            <span className="visually-hidden">
              {' '}
              the record {id ?? index} of {type}
            </span>
          </button>
        )}
      </div>
      <ul>
        {errors.map(({ field, code, message }) => (
          <li key={`${field} ${code}`}>
            <code>{field ?? 'record'}</code> <Sent record={record} field={field} /> {inConsoleWords(message)}{' '}
            <span className="muted">({code})</span>
          </li>
        ))}
      </ul>
      <details>
        <summary>The record</summary>
        <pre className="json">{JSON.stringify(record, undefined, 2)}</pre>
      </details>
      {obstacle !== undefined && <p className="hint">{obstacle}</p>}
    </>
  );
}

const valueCharactersMax = 60;

/** Shows the invalid value, so that the user need not open the record to see it. */
function Sent({ record, field }: { readonly record: unknown; readonly field: string | null }) {
  const value = field !== null && isObject(record) ? record[field] : undefined;
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  return (
    <code className="id sent">
      {text.length > valueCharactersMax ? `${text.slice(0, valueCharactersMax)}…` : text}
    </code>
  );
}

/** Returns why a record cannot be corrected here, or undefined if it can. */
function obstacleOf({ type, record }: Rejection): string | undefined {
  if (!isResourceType(type))
    return 'An interaction has no id before it is stored, so a corrected one cannot replace its rejection. Replay or discard it.';
  if (record === null) return 'The record is larger than 64 KiB and was not kept. Upload it again.';
  if (!isObject(record)) return 'The rejected value is not an object, so there are no fields to correct.';
  return undefined;
}
