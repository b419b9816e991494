import { changes } from './changes.ts';
import { check } from './check.ts';
import type { Command } from './command.ts';
import { completionOf } from './completion.ts';
import { exportRecords } from './export.ts';
import { fields } from './fields.ts';
import { interactions } from './interactions.ts';
import { login, whoami } from './login.ts';
import { map } from './map.ts';
import { rejections } from './rejections.ts';
import { report } from './report.ts';
import { requests } from './requests.ts';
import { status } from './status.ts';
import { upload } from './upload.ts';

const withoutCompletion: Readonly<Record<string, Command>> = {
  login,
  whoami,
  fields,
  map,
  check,
  upload,
  status,
  requests,
  rejections,
  export: exportRecords,
  interactions,
  changes,
  report,
};

export const commands: Readonly<Record<string, Command>> = {
  ...withoutCompletion,
  completion: completionOf(withoutCompletion),
};
