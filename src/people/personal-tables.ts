import { quote, tableOf } from '../records/tables.ts';
import { perType } from '../registry/resources.ts';
import { personalFields, sentFields, type UploadType, uploadTypes } from '../registry/upload-types.ts';

export interface PersonalTable {
  readonly type: UploadType;
  readonly name: string;
  readonly id: string;
  readonly identifying: readonly string[];
  /** A row that cannot stay without its person is deleted. */
  readonly canStay: boolean;
}

export const tableWith = perType((type: UploadType): PersonalTable => {
  const fields = personalFields(type);
  const table = type === 'interactions' ? { name: 'interactions', id: 'interaction_id' } : tableOf(type);
  return {
    type,
    name: table.name,
    id: table.id,
    identifying: fields.identifying.map(quote),
    canStay: fields.all.every((field) => !sentFields(type)[field]?.required),
  };
});

/** Each table comes before the tables that it refers to. */
export const personalTables: readonly PersonalTable[] = uploadTypes
  .map(tableWith)
  .filter(({ identifying }) => identifying.length > 0)
  .toSorted((one, other) => Number(one.type === 'customers') - Number(other.type === 'customers'));
