import type { JsonSchema } from '../../src/http/operation/operation.ts';
import { closed } from './answers.ts';

const text = { type: 'string' };
const count = { type: 'integer', minimum: 0 };
const uuid = { type: 'string', format: 'uuid' };
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** The schemas of responses about the lake. */
export const lakeAnswerSchemas: Readonly<Record<string, JsonSchema>> = {
  Lake: closed({
    tables: { type: 'array', items: ref('LakeTable') },
    notice: {
      oneOf: [closed({ code: { type: 'string', enum: ['lake_off'] }, message: text }), { type: 'null' }],
      description: 'if the lake is off: the code of the error, and what to do',
    },
  }),
  LakeTable: closed({
    table: { ...text, description: 'its name' },
    state: { type: 'string', enum: ['off', 'copying', 'following'] },
    version: { type: ['integer', 'null'], minimum: 0, description: 'null if nothing is written yet' },
    rows: count,
    bytes: count,
    files: count,
    as_of: {
      type: ['string', 'null'],
      format: 'date-time',
      description: 'everything stored before is in the table; null if that is not known',
    },
  }),
  LakeFile: closed({
    file_id: uuid,
    partition: {
      type: 'object',
      additionalProperties: text,
      description: 'the value of each partition column, the same for all rows; the file does not contain it',
    },
    rows: count,
    bytes: count,
    sha256: { ...text, description: 'hexadecimal' },
  }),
  LakeFilePage: closed({
    table: text,
    version: count,
    table_id: uuid,
    description: text,
    schema: { ...text, description: 'the columns as JSON, as the log of a Delta Lake table has them' },
    partition_columns: { type: 'array', items: text },
    files: { type: 'array', items: ref('LakeFile') },
    next_cursor: { type: ['string', 'null'], description: 'null on the last page' },
  }),
};
