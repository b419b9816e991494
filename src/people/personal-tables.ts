import { quote, tableOf } from '../records/tables.ts';
import { perType } from '../registry/resources.ts';
import { sentFields, type UploadType, uploadTypes } from '../registry/upload-types.ts';

/** A table whose rows belong to people. */
export interface PersonalTable {
  readonly type: UploadType;
  readonly name: string;
  /** The second column of the primary key, after the organisation. */
  readonly id: string;
  /** The columns that contain people's ids. */
  readonly identifying: readonly string[];
  /** Whether a row can be kept without its person. If not, it is deleted. */
  readonly canStay: boolean;
}

const personalTable = perType((type: UploadType): PersonalTable => {
  const fields = Object.entries(sentFields(type)).filter(([, { personal }]) => personal !== 'no');
  const table = type === 'interactions' ? { name: 'interactions', id: 'interaction_id' } : tableOf(type);
  return {
    type,
    name: table.name,
    id: table.id,
    identifying: identifyingFields(type).map(quote),
    canStay: fields.every(([, { required }]) => !required),
  };
});

/** Returns the fields of a type that contain people's ids. */
export function identifyingFields(type: UploadType): string[] {
  return Object.entries(sentFields(type)).flatMap(([name, { personal }]) =>
    personal === 'identifies' ? name : [],
  );
}

/** The tables whose rows belong to people. Each one comes before the tables that it refers to. */
export const personalTables: readonly PersonalTable[] = uploadTypes
  .map(personalTable)
  .filter(({ identifying }) => identifying.length > 0)
  .toSorted((one, other) => Number(one.type === 'customers') - Number(other.type === 'customers'));

export const customersTable: PersonalTable = personalTable('customers');
