/** A change of the built program that breaks a promise. */
export interface Defect {
  readonly name: string;
  /** What must be found. It names no violation that a slow machine could explain. */
  readonly breaks: RegExp;
  /** The kinds of faults that bring it out, if not any of them does. */
  readonly faults?: readonly string[];
  readonly edits: readonly Edit[];
}

export interface Edit {
  /** A file of `dist`. */
  readonly file: string;
  /** The text occurs once in the file. */
  readonly text: string;
  readonly by: string;
}

const lost = /^I1: \w+: (lost|an older version)$/;

/** Ten deliberate defects. They exist only in copies of `dist` that `npm run faults -- --defects` makes and removes. */
export const defects: readonly Defect[] = [
  {
    name: 'an answer before the commit',
    breaks: lost,
    faults: ['serve killed', 'sessions of PostgreSQL terminated', 'PostgreSQL killed'],
    edits: [
      {
        file: 'postgres/transactions.js',
        text: '    await commit(client);\n    return result;',
        by: '    setTimeout(() => commit(client).catch(() => {}), 400);\n    return result;',
      },
    ],
  },
  {
    name: 'a swallowed batch',
    breaks: lost,
    edits: [
      {
        file: 'uploads/store/store-batch.js',
        text: '    if (good.length > 0) {',
        by: '    if (good.length > 0 && Math.random() < 0.02) for (const row of good) outcomes[row] = created;\n    else if (good.length > 0) {',
      },
    ],
  },
  {
    name: 'no check of references',
    breaks: /^I3:/,
    edits: [
      {
        file: 'uploads/store/look-up.js',
        text: 'missing: referenced.map((_, at) => setOf(row',
        by: 'missing: referenced.map((_, at) => setOf(void row',
      },
    ],
  },
  {
    name: 'no fold of duplicates',
    breaks: /^I1: \w+: (changed or not erased|an older version)$/,
    edits: [
      {
        file: 'uploads/store/versions.js',
        text: 'this.#last.set(id, this.#overlaid(before, next, next.sent));',
        by: 'if (!before) this.#last.set(id, this.#overlaid(before, next, next.sent));',
      },
    ],
  },
  {
    name: 'a lost claim of an Idempotency-Key',
    breaks: /^I4:/,
    edits: [
      {
        file: 'interactions/idempotency-keys.js',
        text: '    const isNew = rowCount === 1;',
        by: '    const isNew = rowCount === 1;\n    if (Math.random() < 0.9) return undefined;',
      },
    ],
  },
  {
    name: 'a cursor that skips',
    breaks: /^I9: a copy differs/,
    edits: [
      {
        file: 'changes/read-changes.js',
        text: '        this.parts.push({ ...change, start, end });',
        by: '        if (Math.random() < 0.7) this.parts.push({ ...change, start, end });',
      },
    ],
  },
  {
    name: 'a sweep that skips a table',
    breaks: /^I10: id left in student_favourites$|^I1: student_favourites: changed or not erased$/,
    edits: [
      {
        file: 'erasure/sweep/sweep-rows.js',
        text: `personalTables.filter(({ type }) => type !== 'customers')`,
        by: `personalTables.filter(({ type }) => type !== 'customers' && type !== 'student-favourites')`,
      },
    ],
  },
  {
    name: 'a fence that does not wait',
    breaks: /^I10: id left in|^I1: \w+: changed or not erased$/,
    faults: ['a table locked', 'everything delayed between serve and PostgreSQL', 'transactions held'],
    edits: [
      {
        file: 'jobs/pass-fence.js',
        text: '    if (left.length === 0)',
        by: '    if (left.length >= 0)',
      },
    ],
  },
  {
    name: 'a lake that commits twice',
    breaks: /^I12: .* twice$/,
    edits: [
      {
        file: 'lake/interaction-table.js',
        text: '        for (const day of days) {\n            const written',
        by: '        for (const day of days.flatMap((one) => [one, one])) {\n            const written',
      },
    ],
  },
  {
    name: 'a lift that lifts too much',
    breaks: /^I10: (an erased person was stored again|stored after)/,
    edits: [
      {
        file: 'suppression/lift-suppressions.js',
        text: 'where organisation_id = $1 and erasure_id = $2 and lifted_at is null',
        by: 'where organisation_id = $1 and $2::uuid is not null and lifted_at is null',
      },
    ],
  },
];
