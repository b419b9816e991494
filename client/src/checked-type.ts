import { type ResourceType, resourceTypes } from './generated/resources.ts';

/** Types are checked by the compiler, but not in plain JavaScript. */
export function checkedType<T extends ResourceType>(type: T): T {
  if (resourceTypes.includes(type)) return type;
  throw new TypeError(
    `There is no record type ${JSON.stringify(type)}. The types are ${resourceTypes.join(', ')}.`,
  );
}
