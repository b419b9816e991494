import { type ResourceType, resources, resourceTypes } from '../../../client/src/generated/resources.ts';

/** The fields that contain a person's id. Such an id is never part of a URL, because URLs end up in logs. */
export const personFields: ReadonlySet<string> = new Set(['customer_id', 'student_id', 'user_id']);

const typesByIdField: ReadonlyMap<string, ResourceType> = new Map(
  resourceTypes.map((type) => [resources[type].idField, type] as const),
);

/** Returns the type that a field refers to, even if the service does not check the reference. A student is a customer. */
export function referencedType(type: string, field: string): ResourceType | undefined {
  if (field === 'student_id') return 'customers';
  const target = typesByIdField.get(field);
  return target === type ? undefined : target;
}

export function isResourceType(type: string): type is ResourceType {
  return (resourceTypes as readonly string[]).includes(type);
}
