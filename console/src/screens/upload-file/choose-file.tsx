import { type DragEvent, type ReactNode, useId, useState } from 'react';

interface ChooseFileProps {
  /** The name and size of the current file. */
  readonly chosen: string | undefined;
  readonly problem: string | undefined;
  readonly onChoose: (file: File) => void;
  readonly children?: ReactNode;
}

/** Accepts a file from a file dialog or by drag and drop. */
export function ChooseFile({ chosen, problem, onChoose, children }: ChooseFileProps) {
  const id = useId();
  const [over, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const [file] = event.dataTransfer.files;
    if (file) onChoose(file);
  };
  return (
    <section className="card">
      <h2>File</h2>
      <label
        className={over ? 'drop-zone drop-zone-over' : 'drop-zone'}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <span className="drop-zone-text">{chosen ?? 'Choose a file, or drop one here'}</span>
        <span className="hint" id={`${id}-hint`}>
          {chosen === undefined
            ? 'CSV, NDJSON or JSON, also compressed with gzip; Excel (.xlsx) or Parquet'
            : 'Choose another file'}
        </span>
        <input
          type="file"
          className="visually-hidden"
          aria-label="File to upload"
          accept=".csv,.tsv,.ndjson,.jsonl,.json,.gz,.xlsx,.parquet,text/csv"
          aria-describedby={problem === undefined ? `${id}-hint` : `${id}-problem`}
          aria-invalid={problem !== undefined}
          onChange={({ target }) => {
            const [file] = target.files ?? [];
            if (file) onChoose(file);
            // Allow the user to choose the same file again after changing it.
            target.value = '';
          }}
        />
      </label>
      {problem && (
        <p className="problem" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
      {children}
    </section>
  );
}
