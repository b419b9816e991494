import { expect, it } from 'vitest';
import { makeDefectiveCopy } from './defective-copy.ts';
import { defects } from './defects.ts';

it.each(defects)('$name can be planted in the built program', (defect) => {
  expect(defect.edits.length).toBeGreaterThan(0);
  makeDefectiveCopy(defect).remove();
});
