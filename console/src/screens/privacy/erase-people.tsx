import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useId, useState } from 'react';
import { consequencesOf } from '../../../../client/src/erasure-consequences.ts';
import { countErasure, type ErasureRequest, erasePeople, erasurePagesQuery } from '../../api/erasures.ts';
import type { RequestedErasure } from '../../api/types.ts';
import { countOf } from '../../format/format.ts';
import { Failure } from '../../parts/failure.tsx';
import { Done } from '../../parts/notices.tsx';
import { Press } from '../../parts/press.tsx';
import { Question } from '../../parts/question.tsx';
import { Line } from '../../parts/terminal.tsx';
import { IdField, useTypedIds } from './id-field.tsx';
import type { Kind } from './read-ids.ts';

export function ErasePeople() {
  const [kind, setKind] = useState<Kind>('customers');
  const [mode, setMode] = useState<ErasureRequest['mode']>('anonymise');
  const [asking, setAsking] = useState<ErasureRequest>();
  const client = useQueryClient();
  const typed = useTypedIds(kind);
  const { ids, problem } = typed;
  const erasing = useMutation({
    mutationFn: erasePeople,
    onSuccess: () => {
      typed.setText('');
      return client.invalidateQueries({ queryKey: erasurePagesQuery.queryKey });
    },
  });
  const people = countOf(ids.length, 'person', 'people');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (problem !== undefined || ids.length === 0) return;
    setAsking({ [kind === 'customers' ? 'customer_ids' : 'user_ids']: ids, mode });
  };
  return (
    <section className="card">
      <h2>Erase people</h2>
      <form onSubmit={submit}>
        <Choice
          legend="The ids identify"
          value={kind}
          onChange={setKind}
          choices={[
            ['customers', 'Customers (customer_id)'],
            ['users', 'Users in interactions (user_id)'],
          ]}
        />
        <IdField label="Ids" rows={5} kind={kind} typed={typed} />
        <Choice
          legend="Their transactions and interactions"
          value={mode}
          onChange={setMode}
          choices={[
            ['anonymise', 'Keep, without the person'],
            ['delete', 'Delete too'],
          ]}
        />
        <Press
          type="submit"
          className="danger"
          blocked={erasing.isPending || ids.length === 0 || problem !== undefined}
        >
          {erasing.isPending ? 'Erasing…' : `Erase ${ids.length === 0 ? 'people' : people}`}
        </Press>
      </form>
      {erasing.error && <Failure error={erasing.error} what="Erasing failed" />}
      {erasing.data && <Requested erasure={erasing.data} />}
      {asking && (
        <Confirmation
          request={asking}
          people={people}
          onNo={() => setAsking(undefined)}
          onYes={() => {
            setAsking(undefined);
            erasing.mutate(asking);
          }}
        />
      )}
    </section>
  );
}

interface ConfirmationProps {
  readonly request: ErasureRequest;
  /** How many people there are, such as "2 people". */
  readonly people: string;
  readonly onYes: () => void;
  readonly onNo: () => void;
}

/** Shows what an erasure would erase, and asks. If that cannot be counted, people can still be erased. */
function Confirmation({ request, people, onYes, onNo }: ConfirmationProps) {
  const { data, error, isPending } = useQuery({
    queryKey: ['counted erasure', request],
    queryFn: () => countErasure(request),
    // The ids of people are not kept longer than the dialog.
    gcTime: 0,
    retry: false,
  });
  return (
    <Question
      title={`Erase ${people}?`}
      action={`Erase ${people}`}
      blocked={isPending}
      onNo={onNo}
      onYes={onYes}
    >
      {error ? (
        <Failure error={error} what="What will be erased could not be counted" />
      ) : (
        <p role="status">{data ? consequencesOf([data]) : 'Counting what will be erased…'}</p>
      )}
      <p>
        This cannot be undone. As soon as the service answers, nobody can read anything about them, and
        records that name them are refused.
      </p>
    </Question>
  );
}

interface ChoiceProps<V extends string> {
  readonly legend: string;
  readonly value: V;
  readonly onChange: (value: V) => void;
  readonly choices: readonly (readonly [value: V, text: string])[];
}

function Choice<V extends string>({ legend, value, onChange, choices }: ChoiceProps<V>) {
  const name = useId();
  return (
    <fieldset>
      <legend>{legend}</legend>
      {choices.map(([choice, text]) => (
        <label key={choice} className="check">
          <input type="radio" name={name} checked={choice === value} onChange={() => onChange(choice)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

function Requested({ erasure }: { readonly erasure: RequestedErasure }) {
  const unknown = erasure.unknown_customer_ids;
  return (
    <Done>
      <p className="notice-title">
        {countOf(erasure.people, 'person is', 'people are')} erased: nobody can read anything about them.
      </p>
      <p>Their data is being removed; the list above shows when that is done.</p>
      {unknown.length > 0 && (
        <details>
          <summary>{countOf(unknown.length, 'customer was', 'customers were')} not stored</summary>
          <Line text={unknown.join('\n')} />
        </details>
      )}
    </Done>
  );
}
