import { changes } from './commands/changes.ts';
import { check } from './commands/check.ts';
import { exportRecords } from './commands/export.ts';
import { fields } from './commands/fields.ts';
import { interactions } from './commands/interactions.ts';
import { pull } from './commands/lake/pull.ts';
import { login, whoami } from './commands/login.ts';
import { map } from './commands/map.ts';
import { access } from './commands/people/access.ts';
import { erase } from './commands/people/erase.ts';
import { erasures } from './commands/people/erasures.ts';
import { rejections } from './commands/rejections.ts';
import { report } from './commands/report.ts';
import { requests } from './commands/requests.ts';
import { runs } from './commands/runs.ts';
import { status } from './commands/status.ts';
import { upload } from './commands/upload.ts';
import { completionOf } from './completion.ts';
import type { Command } from './options/command.ts';

const withoutCompletion: Readonly<Record<string, Command>> = {
  login,
  whoami,
  fields,
  map,
  check,
  upload,
  status,
  runs,
  requests,
  rejections,
  export: exportRecords,
  interactions,
  changes,
  report,
  pull,
  erase,
  erasures,
  access,
};

export const commands: Readonly<Record<string, Command>> = {
  ...withoutCompletion,
  completion: completionOf(withoutCompletion),
};
