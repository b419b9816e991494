import { type Resource, type ResourceType, resources } from '../../registry/resources.ts';

/** For example, `shop-categories` becomes `ShopCategory`. */
export function schemaName(type: ResourceType): string {
  return resources[type].singular
    .split(' ')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** Stored records have every field, while clients may omit some when they send a record. */
export function storedSchemaName(type: ResourceType): string {
  return `Stored${schemaName(type)}`;
}

/** With `mode=merge`, a record only needs its id. */
export function changesSchemaName(type: ResourceType): string {
  return `${schemaName(type)}Changes`;
}

export function pageSchemaName(type: ResourceType): string {
  return `${schemaName(type)}Page`;
}

export function storedExample(type: ResourceType): Readonly<Record<string, unknown>> {
  const { fields, example }: Resource = resources[type];
  const sent: Readonly<Record<string, unknown>> = example;
  return Object.fromEntries(
    Object.entries(fields).map(([name, { fallback }]) => [name, sent[name] ?? fallback ?? null]),
  );
}
