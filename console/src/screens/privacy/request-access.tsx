import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { accessPagesQuery, requestAccess } from '../../api/access-requests.ts';
import type { AccessRequest } from '../../api/types.ts';
import { countOf } from '../../format/format.ts';
import { Failure } from '../../parts/failure.tsx';
import { Press } from '../../parts/press.tsx';
import { Download, isCollecting } from './access-request-list.tsx';
import { totalOf } from './counts.tsx';
import { IdField, useTypedIds } from './id-field.tsx';

export function RequestAccess() {
  const customers = useTypedIds('customers');
  const users = useTypedIds('users');
  const client = useQueryClient();
  const requesting = useMutation({
    mutationFn: () => requestAccess(customers.ids, users.ids),
    onSuccess: () => {
      customers.setText('');
      users.setText('');
      return client.invalidateQueries({ queryKey: accessPagesQuery.queryKey });
    },
  });
  const isWrong = customers.problem !== undefined || users.problem !== undefined;
  const blocked = requesting.isPending || isWrong || customers.ids.length + users.ids.length === 0;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!blocked) requesting.mutate();
  };
  return (
    <section className="card">
      <h2>Request what is stored about a person</h2>
      <p className="hint">
        Request one person at a time, because the file does not show whose records they are. Customers with
        the same <code>user_id</code> are one person.
      </p>
      <form onSubmit={submit}>
        <IdField label="Customer ids (customer_id)" rows={2} kind="customers" typed={customers} />
        <IdField label="User ids in interactions (user_id)" rows={2} kind="users" typed={users} />
        <Press type="submit" className="primary" blocked={blocked}>
          {requesting.isPending ? 'Requesting…' : 'Request the records'}
        </Press>
      </form>
      {requesting.error && <Failure error={requesting.error} what="The request failed" />}
      {requesting.data && <Progress requested={requesting.data} />}
    </section>
  );
}

/** Shows the request's state. The state comes from the list below, which refreshes until the records are collected. */
function Progress({ requested }: { readonly requested: AccessRequest }) {
  const { data } = useInfiniteQuery(accessPagesQuery);
  const listed = data?.pages
    .flatMap(({ access_requests }) => access_requests)
    .find(({ access_request_id }) => access_request_id === requested.access_request_id);
  const request = listed ?? requested;
  const count = totalOf(request.records);
  return (
    <div className={count > 0 && request.state === 'done' ? 'notice notice-good' : 'notice'} role="status">
      {isCollecting(request) ? (
        <>
          <p className="notice-title">The records are being collected.</p>
          <p>
            You may leave this screen: collecting continues, and the list below shows when the file is ready.
          </p>
        </>
      ) : request.state === 'cancelled' ? (
        <p className="notice-title">The request was cancelled.</p>
      ) : count === 0 ? (
        <>
          <p className="notice-title">Nothing is stored about this person.</p>
          <p>Check the ids for typing errors. Nothing is found about erased people either.</p>
        </>
      ) : (
        <>
          <p className="notice-title">{countOf(count, 'record is', 'records are')} collected.</p>
          <p>
            <Download {...request} />
          </p>
          <p>The file is NDJSON, one record per line. Delete it when you no longer need it.</p>
        </>
      )}
    </div>
  );
}
