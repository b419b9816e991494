import { type FormEvent, useId } from 'react';
import { type UploadType, uploadTypes } from '../../../../client/src/generated/resources.ts';
import { schemas } from '../../../../client/src/generated/schemas.ts';
import { typeName } from '../../format/format.ts';
import { SelectFilter, TextFilter, typeChoices } from '../../parts/filters.tsx';
import { Table } from '../../parts/table.tsx';
import {
  absentFields,
  complaintsAbout,
  type DescribedFile,
  isJson,
  placeName,
  type Settings,
} from './rows/describe-file.ts';

interface SettingsFormProps {
  readonly described: DescribedFile;
  readonly settings: Settings | undefined;
  readonly permitted: readonly UploadType[];
  readonly onChange: (settings: Settings) => void;
  /** Called when the type changes, because each type has its own suggestions. */
  readonly onType: (type: UploadType) => void;
  /** Called when the encoding changes, because the file is then read again. */
  readonly onEncoding: (encoding: string | undefined) => void;
  readonly onCheck: (settings: Settings) => void;
}

/** Shows a form that describes the file: its type, the field of each column, and how values are written. */
export function SettingsForm(props: SettingsFormProps) {
  const { described, settings, permitted, onChange, onType, onEncoding, onCheck } = props;
  const isText = described.format !== 'xlsx' && described.format !== 'parquet';
  const isPermitted = settings !== undefined && permitted.includes(settings.type);
  const complaints = settings && isPermitted ? complaintsAbout(described, settings) : [];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (settings && isPermitted && complaints.length === 0) onCheck(settings);
  };
  return (
    <section className="card">
      <h2>Content of the file</h2>
      <form onSubmit={submit} className="form-wide">
        <div className="filters">
          <TypeField value={settings?.type} onChange={onType} />
          {settings && <ValueFields described={described} settings={settings} onChange={onChange} />}
          {isText && <EncodingField value={described.encoding} onChange={onEncoding} />}
        </div>
        {settings && settings.type === described.suggestedType && (
          <p className="hint">
            The name of the file or its columns suggest {typeName(settings.type).toLowerCase()}.
          </p>
        )}
        {described.detectedEncoding && (
          <p className="hint">
            The file is not UTF-8. It is read as {described.detectedEncoding}; choose another encoding if
            letters look wrong.
          </p>
        )}
        {settings && !isPermitted && (
          <p className="problem" role="alert">
            This key may not upload {settings.type.replaceAll('-', ' ')}. It may upload:{' '}
            {permitted.join(', ')}.
          </p>
        )}
        {settings && <Columns described={described} settings={settings} onChange={onChange} />}
        {settings?.isMerged && <KeptFields settings={settings} />}
        <FirstRows described={described} />
        {described.otherSheets.length > 0 && (
          <p className="notice">
            Only the first sheet is read. These sheets have data too: {described.otherSheets.join(', ')}. To
            upload one of them, make it the first, or use the intake command with a mapping file.
          </p>
        )}
        {complaints.length > 0 && (
          <div className="notice notice-bad" role="alert">
            <p className="notice-title">The file cannot be read like this</p>
            <ul>
              {complaints.map((complaint) => (
                <li key={complaint}>{complaint}</li>
              ))}
            </ul>
          </div>
        )}
        <button type="submit" className="primary" disabled={!isPermitted || complaints.length > 0}>
          Check the file
        </button>
      </form>
    </section>
  );
}

interface TypeFieldProps {
  readonly value: UploadType | undefined;
  readonly onChange: (type: UploadType) => void;
}

function TypeField({ value, onChange }: TypeFieldProps) {
  return (
    <SelectFilter
      label="Type of the records"
      value={value}
      any="Choose a type"
      onChange={(type) => type && onChange(type as UploadType)}
      choices={typeChoices(uploadTypes)}
    />
  );
}

interface EncodingFieldProps {
  readonly value: string | undefined;
  readonly onChange: (encoding: string | undefined) => void;
}

export function EncodingField({ value, onChange }: EncodingFieldProps) {
  return (
    <SelectFilter
      label="Encoding"
      value={value}
      any="Detected"
      onChange={onChange}
      choices={encodings.map((encoding) => ({ value: encoding, text: encoding }))}
    />
  );
}

const encodings = ['utf-8', 'windows-1252', 'iso-8859-15', 'utf-16le', 'shift_jis', 'gb18030'];

interface ChangeProps {
  readonly described: DescribedFile;
  readonly settings: Settings;
  readonly onChange: (settings: Settings) => void;
}

/** Shows the same options that the command has. JSON has native numbers, so it needs no number options. */
function ValueFields({ described, settings, onChange }: ChangeProps) {
  const { dateFormat, decimalComma, thousands, idFrom } = settings;
  const hasColumns = !isJson(described.format);
  return (
    <>
      <TextFilter
        label="Dates are written"
        placeholder="yyyy-MM-dd"
        value={dateFormat}
        onChange={(value) => onChange({ ...settings, dateFormat: value })}
      />
      {hasColumns && (
        <SelectFilter
          label="Numbers are written"
          value={decimalComma ? 'comma' : thousands ? 'thousands' : undefined}
          any="1234.5"
          onChange={(value) =>
            onChange({
              ...settings,
              decimalComma: value === 'comma' || undefined,
              thousands: value === 'thousands' || undefined,
            })
          }
          choices={[
            { value: 'thousands', text: '1,234.5' },
            { value: 'comma', text: '1.234,5' },
          ]}
        />
      )}
      {hasColumns && (
        <TextFilter
          label="Make ids from columns"
          placeholder="such as Shop ID, Date"
          value={idFrom?.join(', ')}
          onChange={(value) =>
            onChange({ ...settings, idFrom: value?.split(',').map((name) => name.trim()) })
          }
        />
      )}
    </>
  );
}

/** Shows each column with its first value and the field that it is mapped to. */
function Columns({ described, settings, onChange }: ChangeProps) {
  const { header, firstRows } = described;
  const { type, map } = settings;
  const fields = Object.keys(schemas[type].properties);
  const { required } = schemas[type];
  return (
    <Table
      caption="Columns"
      columns={[
        {
          title: isJson(described.format) ? 'Member' : 'Column',
          cell: ({ column }) => <code>{column}</code>,
        },
        {
          title: 'First value',
          cell: ({ at }) => <span className="cell-text">{firstRows[0]?.cells[at]}</span>,
        },
        {
          title: 'Sent as',
          cell: ({ column }) => (
            <FieldChoice
              column={column}
              field={map[column] ?? ''}
              fields={fields}
              required={required}
              onChange={(field) => onChange({ ...settings, map: { ...map, [column]: field } })}
            />
          ),
        },
      ]}
      rows={header.map((column, at) => ({ column, at }))}
      keyOf={({ at }) => String(at)}
    />
  );
}

/** Says what happens to stored records: only what the file has changes. */
function KeptFields({ settings }: { readonly settings: Settings }) {
  const absent = absentFields(settings);
  const needed = schemas[settings.type].required.filter((field) => absent.includes(field));
  const type = settings.type.replaceAll('-', ' ');
  return (
    <p className="hint">
      An empty value clears its field in a record that is stored already.
      {absent.length > 0 &&
        ` These fields keep their stored values, because no column is sent as them: ${absent.join(', ')}.`}
      {needed.length > 0 && ` New ${type} will fail, because they need ${needed.join(', ')}.`}
    </p>
  );
}

interface FieldChoiceProps {
  readonly column: string;
  readonly field: string;
  readonly fields: readonly string[];
  readonly required: readonly string[];
  readonly onChange: (field: string) => void;
}

function FieldChoice({ column, field, fields, required, onChange }: FieldChoiceProps) {
  const id = useId();
  return (
    <span className="field-choice">
      <select
        id={id}
        aria-label={`Field of ${column}`}
        value={field}
        onChange={({ target }) => onChange(target.value)}
      >
        <option value="">not sent</option>
        {fields.map((name) => (
          <option key={name} value={name}>
            {required.includes(name) ? `${name} (required)` : name}
          </option>
        ))}
      </select>
      {field !== '' && !isSameName(field, column) && <span className="hint">similar name: check it</span>}
    </span>
  );
}

/** Returns whether a field and a column have the same name. "Shop ID" matches shop_id, but "Shop Nr" does not. */
function isSameName(field: string, column: string): boolean {
  const letters = (name: string) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  return letters(field) === letters(column);
}

function FirstRows({ described: { header, firstRows, format } }: { readonly described: DescribedFile }) {
  return (
    <details className="terminal" open>
      <summary>First rows</summary>
      <Table
        caption="First rows of the file"
        wide
        columns={[
          { title: placeName(format), cell: ({ line }) => line },
          ...header.map((title, at) => ({
            title,
            cell: ({ cells }: (typeof firstRows)[number]) => cells[at] ?? '',
          })),
        ]}
        rows={firstRows}
        keyOf={({ line }) => String(line)}
      />
    </details>
  );
}
