import { inConsoleWords } from '../../../format/format.ts';

/**
 * Maps command options to the terms on the screen. The console and the command share their messages about files, so these
 * messages mention the command's options. The order matters, because later patterns match parts of earlier ones.
 */
const words: readonly (readonly [RegExp, string])[] = [
  [/ Open another run with POST \S+ for what is not stored yet\./, ' Continue to upload the rest.'],
  [
    / End runs when their files are sent, with POST \S+?\.$/,
    ' Wait until some of them end or are a day old.',
  ],
  // The screen shows links instead.
  [/ The outcome is unknown: .*$/s, ''],
  [/^it /, 'The file '],
  [/^its /, 'Its '],
  [
    /add --thousands if it is written 1,234\.5, or --decimal-comma if it is written 1234,5/,
    'choose how numbers are written if it is 1,234.5 or 1234,5',
  ],
  [
    /add --date-format, such as --date-format dd\/MM\/yyyy, if the file has another form/,
    'enter the date format, such as dd/MM/yyyy, if the file has another',
  ],
  [/, as set by --date-format,/, ', the chosen date format,'],
  [/check it, or --date-format/, 'check it, or the date format'],
  [/; if the export has none, derive them with --id-from/, '; if the file has none, make ids from columns'],
  [/, but the id is derived from it \(--id-from\)/, ', but the id is made from it'],
  [/, or derive it with --id-from if the export has no UUIDs/, ', or make ids from columns'],
  [/; specify its column with --map 'column=[^']*'/, '; choose its column'],
  [/; leave one out with --map '[^']*'/, '; leave one of them out'],
  [/--id-from refers to/, 'Ids are derived from'],
  [
    /save the file as UTF-8, or specify its encoding with --encoding/,
    'save the file as UTF-8, or choose its encoding',
  ],
  [/; leave out --encoding, and "encoding" in the mapping file/, '; choose UTF-8'],
  [/add --date-format yyyyMMdd/, 'enter the date format yyyyMMdd'],
  [/--encoding (\S+) is not an encoding/, '$1 is not an encoding'],
  [/ Add --map .*$/, ''],
  [/--map '[^']*' is not possible: /, ''],
];

export function inScreenWords(message: string): string {
  return words.reduce((text, [command, screen]) => text.replace(command, screen), inConsoleWords(message));
}
