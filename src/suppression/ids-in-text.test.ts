import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { UploadType } from '../registry/upload-types.ts';
import { withoutErased } from './ids-in-text.ts';

const [anna, other, item] = [randomUUID(), randomUUID(), randomUUID()];
const erased = new Set([anna, 'anna@example.org', '4711']);

const left = (type: UploadType, record: string | null, record_id: string | null = null) =>
  withoutErased({ type, record_id, record }, erased);

describe('a failed record goes', () => {
  it.each<[UploadType, string]>([
    ['customers', `{"customer_id":"${anna}"}`],
    ['customers', `{"customer_id":"${anna.toUpperCase()}"}`],
    ['customers', `{"customer_id":"${other}","user_id":"anna@example.org"}`],
    ['customers', `{"customer_id":"${other}","user_id":4711}`],
    ['customers', `{"customer_id":"${other}","user_id":["x",{"id":"anna@example.org"}]}`],
    ['customers', `{"customer_id":"${other}","user_id":"anna@example.org","user_id":"${other}"}`],
    ['customers', `{"customer_id":"${other}","note":"same as ${anna}"}`],
    ['transactions', `{"transaction_id":"${other}","student_id":"${anna}"}`],
    ['interactions', `{"student_id":"${anna}","user_id":"x"}`],
    ['interactions', '{"user_id":"anna@example.org"}'],
    ['interactions', `{"student_id":null,"user_id":"${anna.toUpperCase()}"}`],
    ['interactions', '{"student_id":"not a UUID","user_id":"anna@example.org"}'],
    ['interactions', `{"student_id":"${other}","user_id":"x","recommendation_id":"${anna}"}`],
    ['interactions', `["${anna}"]`],
    ['interactions', `{"user_id":"${anna}"`],
  ])('if it belongs to an erased person or cannot be kept without the person: %s %s', (type, record) => {
    expect(left(type, record)).toBeUndefined();
  });

  it('if its own id is the erased person’s', () => {
    expect(left('customers', null, anna)).toBeUndefined();
  });
});

describe('a failed record stays unchanged', () => {
  it.each<[UploadType, string | null]>([
    ['customers', `{"customer_id":"${other}","user_id":"bob@example.org","gender":"anna@example.org"}`],
    ['customers', null],
    ['customers', 'half of'],
    ['transactions', `{"transaction_id":"${other}","student_id":"${other}"}`],
    ['shops', `{"shop_id":"${anna}"}`],
    ['interactions', `{"student_id":"${other}","user_id":"anna"}`],
  ])('if no erased person is in it: %s %s', (type, record) => {
    const failed = { type, record_id: other, record };
    expect(withoutErased(failed, erased)).toBe(failed);
  });
});

describe('an interaction of another student', () => {
  it.each([
    [`{"student_id":"${other}","user_id":"anna@example.org","city":7}`, `"user_id":null,"city":7}`],
    [`{"user_id" : "${anna.toUpperCase()}", "student_id":"${other}"}`, `{"user_id":null, "student_id"`],
    [`{"user_id":4711,"student_id":"${other}"}`, `{"user_id":null,"student_id"`],
    [
      `{"user_id":"anna@example.org","user_id":"x","student_id":"${other}","event_timestamp":12345678901234567890}`,
      `{"user_id":null,"user_id":"x","student_id":"${other}","event_timestamp":12345678901234567890}`,
    ],
    [
      `{"city":"\\"user_id\\":\\"x\\"","user_id":"anna\\u0040example.org","student_id":"${other}","item_id":"${item}"}`,
      `{"city":"\\"user_id\\":\\"x\\"","user_id":null,"student_id"`,
    ],
  ])('is kept with the rest of its text: %s', (record, expected) => {
    expect(left('interactions', record)?.record).toContain(expected);
  });
});
