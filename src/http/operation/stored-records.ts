import { type Resource, type ResourceType, resources } from '../../registry/resources.ts';

/** Returns the schema name of a record type. For example, `shop-categories` becomes `ShopCategory`. */
export function schemaName(type: ResourceType): string {
  return resources[type].singular
    .split(' ')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/**
 * Returns the schema name of a stored record. Stored records have every field, while clients may omit some when they send
 * a record.
 */
export function storedSchemaName(type: ResourceType): string {
  return `Stored${schemaName(type)}`;
}

export function pageSchemaName(type: ResourceType): string {
  return `${schemaName(type)}Page`;
}

/** Returns an example of a record as the API returns it. */
export function storedExample(type: ResourceType): Readonly<Record<string, unknown>> {
  const { fields, example }: Resource = resources[type];
  const sent: Readonly<Record<string, unknown>> = example;
  return Object.fromEntries(
    Object.entries(fields).map(([name, { fallback }]) => [name, sent[name] ?? fallback ?? null]),
  );
}
