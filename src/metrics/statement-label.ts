import { resourceTypes } from '../registry/resources.ts';

const labels = new Map<string, string>();

/** Omits the record type, to limit the number of labels. */
export function statementLabel(name: string): string {
  let label = labels.get(name);
  if (label === undefined) {
    label = resourceTypes.reduce((text, type) => text.replace(new RegExp(` ${type}$`), ''), name);
    labels.set(name, label);
  }
  return label;
}
