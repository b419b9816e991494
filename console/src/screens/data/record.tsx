import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useLocation } from '@tanstack/react-router';
import { type ResourceType, resources, resourceTypes } from '../../../../client/src/generated/resources.ts';
import { recordQuery } from '../../api/records.ts';
import { typeName } from '../../format/format.ts';
import { isResourceType } from '../../format/personal.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Empty, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { fieldNames, Value } from './value.tsx';

const route = getRouteApi('/frame/data/$type/$id');

export function RecordScreen() {
  const { type, id } = route.useParams();
  if (!isResourceType(type) || type === 'customers')
    return (
      <Page title="No such record" back={<Link to="/data">Data</Link>}>
        <p>Choose a type and open a record from its list.</p>
      </Page>
    );
  return <RecordPage type={type} id={id} shownId={encodeURIComponent(id)} />;
}

/** Shows a customer. The id is not in the URL, so opening the URL on its own shows no record. */
export function PersonScreen() {
  const id = useLocation({ select: ({ state }) => state.person?.customer_id });
  if (id === undefined)
    return (
      <Page title="Customer" back={<Back type="customers" />}>
        <Empty title="This address does not identify a customer.">
          <p>Ids of people are never part of an address. Open the customer from the list.</p>
        </Empty>
      </Page>
    );
  return <RecordPage key={id} type="customers" id={id} shownId="$CUSTOMER_ID" />;
}

function Back({ type }: { readonly type: ResourceType }) {
  return (
    <Link to="/data/$type" params={{ type }}>
      {typeName(type)}
    </Link>
  );
}

interface RecordPageProps {
  readonly type: ResourceType;
  readonly id: string;
  /** The id that the terminal line shows. */
  readonly shownId: string;
}

function RecordPage({ type, id, shownId }: RecordPageProps) {
  const may = usePermits();
  return (
    <Page title={`Record of ${type}`} back={<Back type={type} />} lead={<code className="id">{id}</code>}>
      {may('data:read') ? (
        <>
          <RecordFacts type={type} id={id} />
          <Referring type={type} id={id} />
          <Terminal calls={[{ path: `/v1/data/${type}/${shownId}` }]} />
        </>
      ) : (
        <NotPermitted permission="data:read" what="Reading records" />
      )}
    </Page>
  );
}

function RecordFacts({ type, id }: { readonly type: ResourceType; readonly id: string }) {
  const found = useQuery(recordQuery(type, id));
  return (
    <section className="card">
      <h2>Fields</h2>
      <Answer query={found} what="The record" rows={8}>
        {(record) => (
          <Facts
            facts={fieldNames(type).map((field) => [
              field,
              field === resources[type].idField ? (
                <code key={field} className="id">
                  {String(record[field])}
                </code>
              ) : (
                <Value key={field} type={type} field={field} value={record[field]} />
              ),
            ])}
          />
        )}
      </Answer>
    </section>
  );
}

/** Links to the records that refer to this record, for references that the service can search by. */
function Referring({ type, id }: { readonly type: ResourceType; readonly id: string }) {
  const lists = resourceTypes.flatMap((other) =>
    Object.entries(resources[other].references)
      .filter(([, target]) => target === type)
      .map(([field]) => ({ other, field })),
  );
  if (lists.length === 0) return null;
  return (
    <section className="card">
      <h2>Records that refer to it</h2>
      <ul className="link-list">
        {lists.map(({ other, field }) => (
          <li key={other}>
            {type === 'customers' ? (
              <Link to="/data/$type" params={{ type: other }} state={{ person: { student_id: id } }}>
                {typeName(other)}
              </Link>
            ) : (
              <Link to="/data/$type" params={{ type: other }} search={{ [field]: id }}>
                {typeName(other)}
              </Link>
            )}
          </li>
        ))}
        {type === 'customers' && (
          <li>
            <Link to="/interactions" state={{ person: { student_id: id } }}>
              Interactions
            </Link>
          </li>
        )}
      </ul>
    </section>
  );
}
