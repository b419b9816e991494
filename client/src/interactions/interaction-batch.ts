import { IntakeError, isAccepted, isObject, unknownOutcome } from '../errors.ts';
import type { components } from '../generated/api.ts';
import { interactionFields } from '../generated/resources.ts';
import { isUploadAnswer } from '../uploading/send-cuts.ts';

export type NewInteraction = components['schemas']['NewInteraction'];
export type Interaction = components['schemas']['Interaction'];

/**
 * A recorded interaction. With a browser key, the service reveals neither its id nor whether a reference is missing, so
 * `interaction_id` and `created` are null.
 */
export type RecordedInteraction = Omit<Interaction, 'interaction_id' | 'created'> & {
  interaction_id: string | null;
  created: string | null;
};

/** Interactions that are sent together, with the same Idempotency-Key in every attempt. */
export interface Batch {
  readonly key: string;
  /** The JSON of each interaction. */
  readonly parts: readonly string[];
  /** The total size of the parts in bytes. */
  readonly bytes: number;
  /** When the batch was created. The service remembers its key for 24 hours. */
  readonly cutMs: number;
  /** The functions that settle each interaction's promise. Empty if the batch is from an earlier page. */
  readonly settlers: readonly Settler[];
}

export interface Settler {
  resolve(interaction: RecordedInteraction): void;
  reject(error: unknown): void;
}

/**
 * A single interaction is sent to a different path, for which the service keeps separate Idempotency-Keys. Therefore, the key
 * shows which path is used, and a batch stays a batch when it is split.
 */
const batchPrefix = 'batch-';

export function newKey(count: number): string {
  return (count > 1 ? batchPrefix : '') + crypto.randomUUID();
}

export function isSingle({ key, parts }: Batch): boolean {
  return parts.length === 1 && !key.startsWith(batchPrefix);
}

export function pathOf(batch: Batch): string {
  return isSingle(batch) ? '/user-interactions' : '/user-interactions/batch';
}

export function bodyOf(batch: Batch): string {
  return isSingle(batch) ? (batch.parts[0] as string) : `{"records":[${batch.parts.join(',')}]}`;
}

/**
 * Splits a batch for a service with lower limits. The first half keeps the key: if a duplicate of the whole batch is still
 * under way, the service refuses it.
 */
export function halvesOf({ key, parts, bytes, cutMs, settlers }: Batch): [Batch, Batch] {
  const half = Math.ceil(parts.length / 2);
  const first = parts.slice(0, half);
  const firstBytes = Math.round((bytes * first.length) / parts.length);
  const { base, offset } = placeOf(key);
  return [
    { key, parts: first, bytes: firstBytes, cutMs, settlers: settlers.slice(0, half) },
    {
      key: `${base}.${offset + half}`,
      parts: parts.slice(half),
      bytes: bytes - firstBytes,
      cutMs,
      settlers: settlers.slice(half),
    },
  ];
}

/**
 * Returns whether a batch is a later part of the batch from which the other one was split. It may be sent only when the other
 * one is stored, because until then a duplicate of the whole batch could be stored instead.
 */
export function isAfter(later: Batch, { key }: Batch): boolean {
  const one = placeOf(key);
  const other = placeOf(later.key);
  return one.base === other.base && one.offset < other.offset;
}

function placeOf(key: string) {
  const [base, offset = '0'] = key.split('.');
  return { base, offset: Number(offset) };
}

/** Returns whether a response has a result for each of the batch's interactions. */
export function isAnswerTo(batch: Batch, answer: unknown): boolean {
  const { parts } = batch;
  if (isAccepted(answer)) {
    const failed = new Set(answer.errors.map(({ index }) => index));
    return answer.accepted + failed.size === parts.length;
  }
  if (isSingle(batch)) return isObject(answer) && isOf(parts[0] as string, answer);
  const data = isUploadAnswer(answer, parts.length) ? dataOf(answer, parts.length) : undefined;
  return (
    data !== undefined && parts.every((_, at) => data.failures.has(at) || typeof data.ids[at] === 'string')
  );
}

/** Fields that every interaction has. The others are null in an answer that is repeated after the person was erased. */
const required = ['interaction_type', 'item_type', 'item_id', 'event_timestamp'];

/** Returns whether the service answers this interaction, and not another one. It writes UUIDs in lower case. */
function isOf(part: string, answer: Record<string, unknown>): boolean {
  const sent: unknown = JSON.parse(part);
  const same = (field: string) => {
    const [value, answered] = [sent, answer].map((one) => isObject(one) && one[field]);
    if (answered == null && !required.includes(field)) return true;
    return String(value).toLowerCase() === String(answered).toLowerCase();
  };
  return typeof answer.interaction_id === 'string' && Object.keys(interactionFields).every(same);
}

/** Settles each interaction's promise with that interaction's result. The answer is one for which `isAnswerTo` is true. */
export function settle(batch: Batch, answer: unknown, isUnknown: boolean): void {
  const { parts, settlers, key } = batch;
  if (isAccepted(answer)) settleAccepted(parts, settlers, answer);
  else if (isSingle(batch)) settlers[0]?.resolve(answer as Interaction);
  else {
    const data = dataOf(answer, parts.length);
    for (const [index, { resolve, reject }] of settlers.entries()) {
      const failures = data?.failures.get(index);
      if (!data || !failures) resolve(interactionOf(parts[index] as string, data?.ids[index] ?? null));
      else {
        const isOpen = isUnknown || failures.some(({ code }) => code === 'outcome_unknown');
        reject(
          data.status === 500 && isOpen
            ? unknownOutcome(failure(failures, 'unknown', data.requestId, ''), [key])
            : failure(failures, data.status, data.requestId, rejected),
        );
      }
    }
  }
}

/** Settles the promises when the response is for a browser key. */
function settleAccepted(
  parts: readonly string[],
  settlers: readonly Settler[],
  { errors }: components['schemas']['Accepted'],
): void {
  const failures = byIndex(errors as Failure[]);
  for (const [index, { resolve, reject }] of settlers.entries()) {
    const own = failures.get(index);
    if (own) reject(failure(own, 400, null, 'Correct it and record it again.'));
    else resolve(interactionOf(parts[index] as string, null));
  }
}

function byIndex(errors: readonly Failure[]): Map<number, Failure[]> {
  const failures = new Map<number, Failure[]>();
  for (const error of errors) failures.set(error.index, [...(failures.get(error.index) ?? []), error]);
  return failures;
}

interface Failure {
  readonly index: number;
  readonly field: string | null;
  readonly code: components['schemas']['RecordError']['code'];
  readonly message: string;
}

/** Returns the data from a response with exactly one batch, or undefined for any other response. */
function dataOf(answer: unknown, sent: number) {
  if (!isObject(answer) || !Array.isArray(answer.batches) || answer.batches.length !== 1) return undefined;
  const [batch] = answer.batches;
  if (!isObject(batch) || !isObject(batch.data)) return undefined;
  const { status, data } = batch;
  const { errors, interaction_ids: ids = [], request_id: requestId } = data;
  const isGood =
    Array.isArray(errors) &&
    errors.every((error) => isObject(error) && Number.isInteger(error.index)) &&
    Array.isArray(ids) &&
    (ids.length === sent || status === 500) &&
    ids.every((id) => id === null || uuid.test(id));
  if (!isGood) return undefined;
  return {
    status: status === 500 ? 500 : 400,
    failures: byIndex(errors as Failure[]),
    ids: ids as (string | null)[],
    requestId: typeof requestId === 'string' ? requestId : null,
  } as const;
}

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

const rejected = 'It is kept as a rejection, which can be replayed or discarded.';

/** Creates the error for one interaction in a batch, as if that interaction had been sent alone. */
function failure(
  failures: readonly Failure[],
  status: 400 | 500 | 'unknown',
  requestId: string | null,
  remedy: string,
): IntakeError {
  const details = failures.map(({ field, code, message }) => ({ field: field ?? 'body', code, message }));
  const reasons = failures.map(({ field, message }) => (field === null ? message : `${field} ${message}`));
  const [code, advice] =
    status === 400 ? (['invalid_request', remedy] as const) : (['internal', 'Record it again.'] as const);
  const message =
    status === 'unknown'
      ? `The service had a problem: ${reasons.join('; ')}.`
      : `The interaction was not stored: ${reasons.join('; ')}. ${advice}`;
  return new IntakeError(code, message, status === 400 ? 400 : 500, requestId, {
    details: details as components['schemas']['ErrorDetail'][],
  });
}

/** Returns the interaction as the service would return it, built from the data that was sent and the id, if it is known. */
function interactionOf(part: string, id: string | null): RecordedInteraction {
  const sent = JSON.parse(part) as Record<string, string | number | null>;
  const made: Record<string, unknown> = { interaction_id: id };
  for (const [field, format] of Object.entries(interactionFields)) {
    const value = sent[field] ?? null;
    made[field] = format === 'uuid' && typeof value === 'string' ? value.toLowerCase() : value;
  }
  made.event_time = eventTimeOf(sent.event_timestamp as string | number);
  made.created = id && new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toISOString();
  return made as RecordedInteraction;
}

/** Epoch numbers below this are seconds, and all others are milliseconds. */
const epochSecondsEnd = 100_000_000_000;
const dateTime = /^(.{10})t(\d\d:\d\d)(:\d\d)?(?:\.(\d+))?(?:z|([+-]\d\d):?(\d\d)?)?$/i;

/** Converts a valid `event_timestamp` to a time in UTC with microseconds. */
function eventTimeOf(sent: string | number): string {
  if (typeof sent === 'number') {
    const iso = new Date(sent < epochSecondsEnd ? sent * 1_000 : sent).toISOString();
    return iso.replace('Z', '000Z');
  }
  const [, day, minute, second = ':00', fraction = '', hours = '+00', minutes = '00'] =
    dateTime.exec(sent) ?? [];
  const sign = hours.startsWith('-') ? -1 : 1;
  const offsetMs = sign * (Math.abs(Number(hours)) * 60 + Number(minutes)) * 60_000;
  const iso = new Date(Date.parse(`${day}T${minute}${second}Z`) - offsetMs).toISOString();
  return `${iso.slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`;
}
