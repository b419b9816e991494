import { resourceTypes } from '../registry/resources.ts';

const labels = new Map<string, string>();

/** The name of a prepared statement without the record type, to keep the number of labels small. */
export function statementLabel(name: string): string {
  let label = labels.get(name);
  if (label === undefined) {
    label = resourceTypes.reduce((text, type) => text.replace(new RegExp(` ${type}$`), ''), name);
    labels.set(name, label);
  }
  return label;
}
