import { type ResourceType, resourceTypes } from './generated/resources.ts';

/** Checks the type at run time too, because plain JavaScript callers have no compiler to check it for them. */
export function checkedType<T extends ResourceType>(type: T): T {
  if (resourceTypes.includes(type)) return type;
  throw new TypeError(
    `There is no record type ${JSON.stringify(type)}. The types are ${resourceTypes.join(', ')}.`,
  );
}
