import { type Resource, type ResourceType, resources } from '../../registry/resources.ts';

/** `shop-categories` becomes `ShopCategory`. */
export function schemaName(type: ResourceType): string {
  return resources[type].singular
    .split(' ')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** A stored record has every field; a sent one need not. */
export function storedSchemaName(type: ResourceType): string {
  return `Stored${schemaName(type)}`;
}

export function pageSchemaName(type: ResourceType): string {
  return `${schemaName(type)}Page`;
}

/** A record of the type as it is read back. */
export function storedExample(type: ResourceType): Readonly<Record<string, unknown>> {
  const { fields, example }: Resource = resources[type];
  const sent: Readonly<Record<string, unknown>> = example;
  return Object.fromEntries(
    Object.entries(fields).map(([name, { fallback }]) => [name, sent[name] ?? fallback ?? null]),
  );
}
