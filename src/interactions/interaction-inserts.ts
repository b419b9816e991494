import { type Change, changesStatement } from '../changes/add-change.ts';
import { limits } from '../limits.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Statement } from '../postgres/one-exchange.ts';
import { type CountChange, countChangesStatement } from '../records/record-counts.ts';
import { arraysOf, insertStatement, type NewInteraction, writtenOutStatement } from './interaction-rows.ts';

/** Interactions of one organisation that are to be written. */
export interface Added {
  readonly organisationId: string;
  readonly interactions: readonly NewInteraction[];
}

/** A statement and how many rows it writes. */
export interface Insert {
  readonly statement: Statement;
  readonly rows: number;
  /** Makes the change of its rows once more, with a new id, for rows that are written later. */
  readonly retold?: () => Insert;
}

/** The statements that write an organisation's interactions, their count and their change. */
export function insertsOf(added: Added): Insert[] {
  const { organisationId, interactions } = added;
  const tell = () => ({ statement: changesStatement([changeOf(added)]), rows: 1 });
  return [
    { statement: countChangesStatement([countChangeOf(added)]), rows: 1 },
    {
      statement: insertStatement(organisationId, arraysOf(interactions)),
      rows: interactions.length,
      retold: tell,
    },
    tell(),
  ];
}

/**
 * The same for several organisations of a Citus worker, in as few statements as there can be: Citus plans each statement anew,
 * and a task for each shard. Of four organisations with three interactions each, this takes 1.6 ms of the worker's CPU, one
 * statement for each organisation and table 2.8. An insert that reads arrays takes 1 ms, and is worth it for many rows only.
 */
export function insertsAtWorker(all: readonly Added[]): Insert[] {
  const isLarge = ({ interactions }: Added) => interactions.length > limits.interactionsWrittenOutMax;
  const large = all.filter(isLarge).map(({ organisationId, interactions }) => ({
    statement: insertStatement(organisationId, arraysOf(interactions)),
    rows: interactions.length,
  }));
  const small = all.filter((added) => !isLarge(added)).flatMap(({ interactions }) => interactions);
  return [
    ...written(all.map(countChangeOf), countChangesStatement),
    ...large,
    ...written(small, writtenOutStatement),
    ...written(all.map(changeOf), changesStatement),
  ];
}

/** Statements for rows of any number, each of a number that Citus plans well. */
function written<Row>(rows: readonly Row[], statementOf: (rows: readonly Row[]) => Statement): Insert[] {
  const inserts: Insert[] = [];
  for (let start = 0; start < rows.length; start += limits.interactionsWrittenOutMax) {
    const part = rows.slice(start, start + limits.interactionsWrittenOutMax);
    inserts.push({ statement: statementOf(part), rows: part.length });
  }
  return inserts;
}

function countChangeOf({ organisationId, interactions }: Added): CountChange {
  const records = interactions.length;
  return { organisationId, type: 'interactions', records, newestUpdated: null, lastUpload: new Date() };
}

function changeOf({ organisationId, interactions }: Added): Change {
  const ids = binaryArray(
    'uuid',
    interactions.map(({ interactionId }) => interactionId),
  );
  return { organisationId, type: 'interactions', count: interactions.length, ids };
}
