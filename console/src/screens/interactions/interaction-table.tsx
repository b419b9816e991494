import { itemTypes } from '../../../../client/src/generated/resources.ts';
import type { Interaction } from '../../api/types.ts';
import { Time } from '../../format/time.tsx';
import { None } from '../../parts/notices.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { RecordLink } from '../data/record-link.tsx';

const none = <None />;

const columns: readonly Column<Interaction>[] = [
  { title: 'Received', cell: ({ created }) => <Time value={created} /> },
  { title: 'Interaction', cell: ({ interaction_type }) => interaction_type },
  { title: 'Item', cell: (interaction) => <Item {...interaction} /> },
  { title: 'Platform', cell: ({ platform }) => platform ?? none },
  { title: 'Place', cell: ({ city, country }) => [city, country].filter(Boolean).join(', ') || none },
  { title: 'Source', cell: ({ source }) => (source === null ? 'browsing' : 'recommendation') },
  { title: 'Student', cell: ({ student_id }) => <Student id={student_id} /> },
  {
    title: 'User',
    cell: ({ user_id }) =>
      user_id === null ? (
        none
      ) : (
        <code className="id" title={user_id}>
          {user_id}
        </code>
      ),
  },
  { title: 'Happened', cell: ({ event_time }) => <Time value={event_time} /> },
];

function Item({ item_type, item_id }: Pick<Interaction, 'item_type' | 'item_id'>) {
  const type = itemTypes[item_type];
  const id = (
    <code className="id" title={item_id}>
      {item_id}
    </code>
  );
  return (
    <>
      {item_type}{' '}
      {type === undefined ? (
        id
      ) : (
        <RecordLink type={type} id={item_id}>
          {id}
        </RecordLink>
      )}
    </>
  );
}

function Student({ id }: { readonly id: string | null }) {
  if (id === null) return none;
  return (
    <RecordLink type="customers" id={id}>
      <code className="id" title={id}>
        {id}
      </code>
    </RecordLink>
  );
}

export function InteractionTable({ rows }: { readonly rows: readonly Interaction[] }) {
  return (
    <Table
      caption="Interactions"
      columns={columns}
      rows={rows}
      keyOf={({ interaction_id }) => interaction_id}
      wide
    />
  );
}
