import { resources, type UploadType, uploadTypes } from '../../generated/resources.ts';
import { schemas } from '../../generated/schemas.ts';
import { FileError } from '../file-error.ts';
import { typeOfName } from '../file-name.ts';
import { suggestField } from './suggest-field.ts';

type Mapping = Readonly<Record<string, string>>;

/**
 * Maps each column to the field that its name suggests, or to '' if it suggests none. Columns in `known` keep their field.
 */
export function suggestColumns(type: UploadType, header: readonly string[], known: Mapping = {}): Mapping {
  const isField = (name: string) => Object.hasOwn(schemas[type].properties, name);
  const taken = new Set([...header.filter(isField), ...Object.values(known)]);
  const columns: Record<string, string> = { ...known };
  for (const column of header.filter((each) => !Object.hasOwn(known, each))) {
    const field = isField(column) ? column : (suggestField(column, type, taken) ?? '');
    taken.add(field);
    columns[column] = field;
  }
  return columns;
}

/**
 * Returns the type that the file name suggests. If the name suggests none, returns a type whose required fields all have a
 * column.
 */
export function suggestType(fileName: string, header: readonly string[]): UploadType | undefined {
  try {
    return typeOfName(fileName);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
  const fitting = uploadTypes.flatMap((type) => {
    const found = Object.values(suggestColumns(type, header)).filter((field) => field !== '');
    const isComplete = schemas[type].required.every((field) => found.includes(field));
    // A header may match several types equally well, so prefer the type whose id column comes first.
    const idAt = header.findIndex((column) => suggestColumns(type, [column])[column] === idFieldOf(type));
    return isComplete ? [{ type, found: found.length, idAt: idAt < 0 ? header.length : idAt }] : [];
  });
  const [best] = fitting.sort((one, other) => other.found - one.found || one.idAt - other.idAt);
  return best?.type;
}

function idFieldOf(type: UploadType): string {
  return resources[type].idField;
}
