import { type FormEvent, useMemo, useState } from 'react';
import { countOf } from '../../format/format.ts';
import type { FileUpload } from './rows/file-upload.ts';
import type { Row } from './rows/row-checker.ts';

const valuesShown = 10;

interface WrongValuesProps {
  readonly upload: FileUpload;
  readonly column: string;
  readonly rows: readonly Row[];
}

/** Shows invalid values that several rows share, so that the user can replace a value in all of these rows. */
export function WrongValues({ upload, column, rows }: WrongValuesProps) {
  const at = upload.checker.header.indexOf(column);
  const shared = useMemo(() => {
    const wrong = rows.filter(({ problems }) => problems.some((problem) => problem.column === column));
    const byValue = Map.groupBy(wrong, ({ cells }) => cells?.[at]);
    return [...byValue]
      .flatMap(([value, found]) => (value === undefined ? [] : [{ value, count: found.length }]))
      .filter(({ count }) => count > 1)
      .sort((one, other) => other.count - one.count)
      .slice(0, valuesShown);
  }, [rows, column, at]);
  if (shared.length === 0) return null;
  return (
    <div className="wrong-values">
      {shared.map(({ value, count }) => (
        <Replace
          key={value}
          value={value}
          count={count}
          column={column}
          onReplace={(to) => upload.correctEvery(column, value, to)}
        />
      ))}
    </div>
  );
}

interface ReplaceProps {
  readonly value: string;
  readonly count: number;
  readonly column: string;
  readonly onReplace: (to: string) => void;
}

function Replace({ value, count, column, onReplace }: ReplaceProps) {
  const [to, setTo] = useState('');
  const named = value === '' ? 'the empty cell' : value;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onReplace(to);
  };
  return (
    <form className="replace" onSubmit={submit}>
      <span className="cell-text">
        Replace {value === '' ? 'empty cells' : <code>{value}</code>} in {countOf(count, 'row')} with
      </span>
      <input
        type="text"
        autoComplete="off"
        spellCheck={false}
        aria-label={`${column}: replace ${named} with`}
        value={to}
        onChange={({ target }) => setTo(target.value)}
      />
      <button type="submit" disabled={to === value}>
        Replace all
      </button>
    </form>
  );
}
