import {
  interactionsPerRequestMax,
  type RecordOf,
  type ResourceType,
  resources,
  resourceTypes,
} from './generated/resources.ts';
import type { NewInteraction } from './interaction-batch.ts';

/** What can be uploaded. */
export type UploadType = ResourceType | 'interactions';

/** What is uploaded, per type. */
export interface UploadedOf extends RecordOf {
  interactions: NewInteraction;
}

export interface UploadTarget {
  readonly path: string;
  /** Undefined if what is sent has no id. */
  readonly idField: string | undefined;
  readonly recordsPerRequestMax: number;
}

export function targetOf(type: UploadType): UploadTarget {
  if (type === 'interactions')
    return {
      path: '/user-interactions/batch',
      idField: undefined,
      recordsPerRequestMax: interactionsPerRequestMax,
    };
  const { idField, recordsPerRequestMax } = resources[checkedType(type)];
  return { path: `/v1/data/${type}`, idField, recordsPerRequestMax };
}

/** Types are checked by the compiler, but not in plain JavaScript. */
export function checkedType<T extends ResourceType>(type: T): T {
  if (Object.hasOwn(resources, type)) return type;
  throw new TypeError(
    `There is no record type ${JSON.stringify(type)}. The types are ${resourceTypes.join(', ')}.`,
  );
}
