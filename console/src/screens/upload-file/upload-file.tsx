import './upload-file.css';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { resources, type UploadType, uploadTypes } from '../../../../client/src/generated/resources.ts';
import { FileError } from '../../../../client/src/parsing/file-error.ts';
import { uploadPermission } from '../../api/permissions.ts';
import { forgetRuns } from '../../api/runs.ts';
import { formatBytes } from '../../format/format.ts';
import { shellOptions, shellWord } from '../../format/shell-word.ts';
import { QuotaNotice } from '../../frame/quota-notice.tsx';
import { usePermits } from '../../frame/signed-in.tsx';
import { NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { CheckedFile } from './checked-file.tsx';
import { ChooseFile } from './choose-file.tsx';
import { askWorker } from './rows/ask-worker.ts';
import { type DescribedFile, type Settings, suggestSettings } from './rows/describe-file.ts';
import { FileUpload } from './rows/file-upload.ts';
import { inScreenWords } from './rows/screen-words.ts';
import { EncodingField, SettingsForm } from './settings-form.tsx';

export function UploadFileScreen() {
  const may = usePermits();
  const permitted = uploadTypes.filter((type) => may(uploadPermission(type)));
  return (
    <Page
      title="Upload a file"
      lead="The file is read and checked in this browser. Only records that pass are sent."
      back={<Link to="/uploads">Uploads</Link>}
    >
      {permitted.length > 0 ? (
        <UploadFile permitted={permitted} />
      ) : (
        <NotPermitted permission="data:write" what="Uploading records" />
      )}
    </Page>
  );
}

function UploadFile({ permitted }: { readonly permitted: readonly UploadType[] }) {
  const [described, setDescribed] = useState<DescribedFile>();
  const [settings, setSettings] = useState<Settings>();
  const [problem, setProblem] = useState<string>();
  /** A file that cannot be read in the chosen encoding. */
  const [undecoded, setUndecoded] = useState<{
    readonly file: File;
    readonly encoding: string | undefined;
  }>();
  const [upload, setUpload] = useState<FileUpload>();
  const client = useQueryClient();
  useEffect(
    () => () => {
      upload?.leave().then(() => forgetRuns(client));
    },
    [client, upload],
  );

  const read = async (file: File, encoding?: string, before?: Settings) => {
    setProblem(undefined);
    setUpload(undefined);
    // Otherwise, the earlier file could be checked while this one is read.
    if (before === undefined) setDescribed(undefined);
    try {
      const found = await describe(file, encoding);
      const type = before?.type ?? found.suggestedType;
      setDescribed(found);
      setUndecoded(undefined);
      // Suggest the settings again, because a different encoding may produce a different header.
      setSettings(type && { ...suggestSettings(found, type), ...(before && keptOptions(before)) });
    } catch (error) {
      const lines = error instanceof FileError ? error.lines : [String(error)];
      const message = lines.map(inScreenWords).join(' ');
      setProblem(message);
      if (before !== undefined) return;
      setDescribed(undefined);
      const isDecoding = encoding !== undefined || message.includes('encoding');
      setUndecoded(isDecoding ? { file, encoding } : undefined);
    }
  };
  const check = (chosen: Settings) => {
    if (described === undefined) return;
    const started = new FileUpload(described, chosen);
    setUpload(started);
    started.check();
  };
  const file = described?.file ?? undecoded?.file;
  return (
    <>
      <QuotaNotice />
      <ChooseFile
        chosen={file && `${file.name}, ${formatBytes(file.size)}`}
        problem={problem}
        onChoose={(chosen) => {
          if (upload?.state().progress) setProblem('Stop the current step first, or wait until it ends.');
          else read(chosen);
        }}
      >
        {undecoded && (
          <div className="filters">
            <EncodingField
              value={undecoded.encoding}
              onChange={(encoding) => read(undecoded.file, encoding)}
            />
          </div>
        )}
      </ChooseFile>
      {!described && (
        <p className="hint">
          Records that others refer to go first, such as shops before transactions.{' '}
          <Link to="/data">Data</Link> lists what must exist before each type.
        </p>
      )}
      {described && !upload && (
        <SettingsForm
          described={described}
          settings={settings}
          permitted={permitted}
          onChange={setSettings}
          onType={(type) => setSettings(suggestSettings(described, type))}
          onEncoding={(encoding) => read(described.file, encoding, settings)}
          onCheck={check}
        />
      )}
      {upload && settings && (
        <CheckedFile
          upload={upload}
          fileName={described?.file.name ?? ''}
          onChangeSettings={() => setUpload(undefined)}
        />
      )}
      {settings && described && <SameFromTerminal name={described.file.name} settings={settings} />}
    </>
  );
}

async function describe(file: File, encoding: string | undefined): Promise<DescribedFile> {
  for await (const answered of askWorker({ wants: 'description', file, encoding }))
    if (answered.is === 'described') return answered.described;
  throw new Error('The file was not read.');
}

function keptOptions({ dateFormat, decimalComma, thousands }: Settings): Partial<Settings> {
  return { dateFormat, decimalComma, thousands };
}

function SameFromTerminal({ name, settings }: { readonly name: string; readonly settings: Settings }) {
  const { type, map, dateFormat, decimalComma, thousands, encoding, idFrom } = settings;
  const maps = Object.entries(map)
    .filter(([column, field]) => column !== field)
    .map(([column, field]) => ` --map ${shellWord(`${column}=${field}`)}`);
  const options = shellOptions({ type, 'date-format': dateFormat, encoding, 'id-from': idFrom?.join(',') });
  const switches = `${decimalComma ? ' --decimal-comma' : ''}${thousands ? ' --thousands' : ''}`;
  return (
    <Terminal
      calls={[
        {
          path: resources[type].path,
          method: 'POST',
          body: '{"records": [{…}]}',
          intake: `intake upload ${shellWord(name)}${options}${switches}${maps.join('')}`,
        },
      ]}
    />
  );
}
