import { type ResourceType, resources, resourceTypes } from '../../../client/src/generated/resources.ts';

/** Fields that hold the id of a person. Such an id is never written into an address: addresses end up in logs. */
export const personFields: ReadonlySet<string> = new Set(['customer_id', 'student_id', 'user_id']);

const typesByIdField: ReadonlyMap<string, ResourceType> = new Map(
  resourceTypes.map((type) => [resources[type].idField, type] as const),
);

/** The type that a field refers to, whether or not the service checks the reference. A student is a customer. */
export function referencedType(type: string, field: string): ResourceType | undefined {
  if (field === 'student_id') return 'customers';
  const target = typesByIdField.get(field);
  return target === type ? undefined : target;
}

export function isResourceType(type: string): type is ResourceType {
  return (resourceTypes as readonly string[]).includes(type);
}
