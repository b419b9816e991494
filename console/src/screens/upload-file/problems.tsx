import { useEffect, useId, useMemo, useState } from 'react';
import { countOf, formatNumber } from '../../format/format.ts';
import { Badge } from '../../parts/badge.tsx';
import { type Group, keyOf, rowsKeptMax } from './rows/failed-rows.ts';
import type { FileUpload, UploadState } from './rows/file-upload.ts';
import type { Row, RowChecker } from './rows/row-checker.ts';
import { WrongValues } from './wrong-values.tsx';

const rowsPerPage = 20;
const groupsShown = 20;

interface ProblemsProps {
  readonly upload: FileUpload;
  readonly state: UploadState;
}

/**
 * Shows the problems by column and reason, and the affected rows, either all of them or those with one reason. The user can
 * correct rows in place.
 */
export function Problems({ upload, state }: ProblemsProps) {
  const { failed, corrected, canContinue, run } = state;
  const isFrozen = canContinue || run?.hasEnded === true;
  const [group, setGroup] = useState<string>();
  const [page, setPage] = useState(0);
  // This is computed once per reason, because a corrected row must not disappear from the list while the user works on it.
  const lines = useMemo(() => {
    const isShown = (row: Row) => group === undefined || row.problems.some((one) => keyOf(one) === group);
    return failed
      .rows()
      .filter(isShown)
      .map(({ line }) => line);
  }, [failed, group]);
  const choose = (key: string | undefined) => {
    setGroup(key);
    setPage(0);
  };
  const chosen = failed.groups().find(({ key }) => key === group);
  const rowsOf = (of: readonly number[]) => of.flatMap((line) => failed.get(line) ?? []);
  const shown = lines.slice(page * rowsPerPage, (page + 1) * rowsPerPage);
  return (
    <>
      {!failed.isComplete && (
        <p className="notice">
          {formatNumber(failed.count)} rows failed. The first {formatNumber(rowsKeptMax)} can be corrected
          here; for more, correct the file itself.
        </p>
      )}
      <p className="hint">
        Choose a reason to see only its rows, and to replace a wrong value in all of them.
      </p>
      <Groups
        place={upload.checker.place.toLowerCase()}
        groups={failed.groups()}
        chosen={group}
        onChoose={choose}
      />
      <p className="muted" role="status">
        {countOf(lines.length, 'row')}
        {group === undefined ? '' : ' with this reason'}, {formatNumber(corrected)} corrected
      </p>
      {chosen?.column && !isFrozen && (
        <WrongValues upload={upload} column={chosen.column} rows={rowsOf(lines)} />
      )}
      <ul className="records failed-rows">
        {shown.map((line) => {
          const row = failed.get(line);
          return row && <RowEditor key={line} row={row} upload={upload} isFrozen={isFrozen} />;
        })}
      </ul>
      <Pages page={page} pages={Math.ceil(lines.length / rowsPerPage)} onPage={setPage} />
    </>
  );
}

interface GroupsProps {
  readonly place: string;
  readonly groups: readonly Group[];
  readonly chosen: string | undefined;
  readonly onChoose: (key: string | undefined) => void;
}

function Groups({ place, groups, chosen, onChoose }: GroupsProps) {
  return (
    <ul className="reasons" aria-label="Reasons">
      {groups.slice(0, groupsShown).map(({ key, column, count, message, firstLine }) => (
        <li key={key}>
          <button
            type="button"
            className="reason"
            aria-pressed={chosen === key}
            onClick={() => onChoose(chosen === key ? undefined : key)}
          >
            <span>
              <code>{column ?? 'row'}</code> {message}
            </span>
            <span className="hint">
              {countOf(count, 'row')}, first in {place} {formatNumber(firstLine)}
            </span>
          </button>
        </li>
      ))}
      {groups.length > groupsShown && (
        <li className="hint">and {groups.length - groupsShown} more reasons</li>
      )}
    </ul>
  );
}

interface RowEditorProps {
  readonly row: Row;
  readonly upload: FileUpload;
  readonly isFrozen: boolean;
}

/** Shows a row's invalid cells. The other cells are shown on demand. */
function RowEditor({ row, upload, isFrozen }: RowEditorProps) {
  const { line, cells, text, problems } = row;
  const [wrongFirst] = useState(() => new Set(problems.map(({ column }) => column)));
  const { checker } = upload;
  const correct = (column: string | null, value: string) => upload.correct(line, column, value);
  const messageFor = (column: string | null) =>
    problems
      .filter((problem) => problem.column === column)
      .map(({ message }) => message)
      .join('; ');
  const wrong = new Set([...wrongFirst, ...problems.map(({ column }) => column)]);
  const shown = cells ? checker.header.filter((column) => wrong.has(column)) : [];
  const others = cells ? checker.sentColumns().filter((column) => !wrong.has(column)) : [];
  const elsewhere = problems.filter(({ column }) => cells === undefined || !shown.includes(column ?? ''));
  return (
    <li>
      <div className="record-head">
        <h3>
          {checker.place} {formatNumber(line)}
        </h3>
        {problems.length === 0 && <Badge tone="good">Corrected</Badge>}
      </div>
      {cells === undefined && text !== undefined && (
        <Cell
          label="The whole line"
          value={text}
          problem={messageFor(null)}
          isFrozen={isFrozen}
          onCorrect={(value) => correct(null, value)}
        />
      )}
      {(cells !== undefined || text === undefined) &&
        elsewhere.map(({ column, message }) => (
          <p key={`${column} ${message}`} className="problem">
            {column === null ? message : `${column} ${message}`}
          </p>
        ))}
      <CellList {...{ checker, cells, isFrozen, correct, messageFor }} columns={shown} />
      {others.length > 0 && (
        <details className="terminal">
          <summary>Other cells</summary>
          <CellList {...{ checker, cells, isFrozen, correct, messageFor }} columns={others} />
        </details>
      )}
    </li>
  );
}

interface CellListProps {
  readonly checker: RowChecker;
  readonly cells: readonly string[] | undefined;
  readonly columns: readonly string[];
  readonly isFrozen: boolean;
  readonly correct: (column: string, value: string) => void;
  readonly messageFor: (column: string) => string;
}

function CellList({ checker, cells = [], columns, isFrozen, correct, messageFor }: CellListProps) {
  if (columns.length === 0) return null;
  return (
    <div className="cells">
      {columns.map((column) => (
        <Cell
          key={column}
          label={column}
          value={cells[checker.header.indexOf(column)] ?? ''}
          problem={messageFor(column)}
          isFrozen={isFrozen}
          onCorrect={(value) => correct(column, value)}
        />
      ))}
    </div>
  );
}

interface CellProps {
  readonly label: string;
  readonly value: string;
  /** Describes the problem, or is empty if the cell is valid. */
  readonly problem: string;
  readonly isFrozen: boolean;
  readonly onCorrect: (value: string) => void;
}

/** Shows a cell that is checked on blur or Enter. */
function Cell({ label, value, problem, isFrozen, onCorrect }: CellProps) {
  const id = useId();
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const apply = () => {
    if (typed !== value) onCorrect(typed);
  };
  return (
    <div className="field cell">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="text"
        autoComplete="off"
        spellCheck={false}
        disabled={isFrozen}
        value={typed}
        aria-invalid={problem !== ''}
        aria-describedby={problem === '' ? undefined : `${id}-problem`}
        onChange={({ target }) => setTyped(target.value)}
        onBlur={apply}
        onKeyDown={({ key }) => {
          if (key === 'Enter') apply();
        }}
      />
      {problem !== '' && (
        <p className="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}

interface PagesProps {
  readonly page: number;
  readonly pages: number;
  readonly onPage: (page: number) => void;
}

function Pages({ page, pages, onPage }: PagesProps) {
  if (pages < 2) return null;
  return (
    <div className="buttons">
      <button type="button" disabled={page === 0} onClick={() => onPage(page - 1)}>
        Previous rows
      </button>
      <button type="button" disabled={page + 1 >= pages} onClick={() => onPage(page + 1)}>
        Next rows
      </button>
      <span className="muted check" role="status">
        Page {formatNumber(page + 1)} of {formatNumber(pages)}
      </span>
    </div>
  );
}
