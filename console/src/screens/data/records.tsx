import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useLocation } from '@tanstack/react-router';
import { type ResourceType, resources, resourceTypes } from '../../../../client/src/generated/resources.ts';
import { recordPagesQuery } from '../../api/records.ts';
import { queryText } from '../../api/request.ts';
import type { StoredRecord } from '../../api/types.ts';
import { typeName } from '../../format/format.ts';
import { isResourceType, personFields } from '../../format/personal.ts';
import { shellOptions } from '../../format/shell-word.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import {
  CheckFilter,
  Filters,
  isFiltered,
  SelectFilter,
  TextFilter,
  TimeFilter,
  typeChoices,
} from '../../parts/filters.tsx';
import { Pages } from '../../parts/more.tsx';
import { Empty, NothingFound, NotPermitted } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { useChangeFilter } from '../../parts/search/use-change-filter.ts';
import { Table } from '../../parts/table.tsx';
import { Line, Terminal } from '../../parts/terminal.tsx';
import { fieldNames, isNumeric, Value } from './value.tsx';

const route = getRouteApi('/frame/data/$type');

export function RecordsScreen() {
  const { type } = route.useParams();
  const may = usePermits();
  const back = <Link to="/data">Data</Link>;
  if (!isResourceType(type))
    return (
      <Page title="No such type" back={back}>
        <p>
          <code>{type}</code> is not a type of records.
        </p>
      </Page>
    );
  return (
    <Page title={typeName(type)} back={back}>
      {may('data:read') ? (
        <Records key={type} type={type} />
      ) : (
        <NotPermitted permission="data:read" what="Reading records" />
      )}
    </Page>
  );
}

/** Returns the filters from the URL, and the student from the history state. */
function useFilter(type: ResourceType) {
  const search = route.useSearch();
  const student_id = useLocation({ select: ({ state }) => state.person?.student_id });
  const isKnown = (name: string) =>
    name === 'stored_since' || name === 'include_deleted' || name in resources[type].references;
  const known = Object.fromEntries(Object.entries(search).filter(([name]) => isKnown(name)));
  return isKnown('student_id') ? { ...known, student_id } : known;
}

function Records({ type }: { readonly type: ResourceType }) {
  const filter = useFilter(type);
  const list = useInfiniteQuery(recordPagesQuery(type, filter));
  return (
    <>
      <RecordFilters type={type} />
      <section className="card">
        <h2 className="visually-hidden">Records</h2>
        <Pages
          query={list}
          what="The records"
          one="record"
          rowsOf={({ records }) => records}
          empty={<NoRecords type={type} filtered={isFiltered(filter)} />}
        >
          {(records) => <RecordTable type={type} records={records} />}
        </Pages>
      </section>
      <Terminal
        calls={[
          {
            path: `/v1/data/${type}${queryText(withoutPeople(filter))}`,
            intake: `intake export ${type} --format csv${exportOptions(filter)}`,
          },
        ]}
      />
    </>
  );
}

/** Returns the options for the export command, without reference filters, which the command does not support. */
function exportOptions({
  stored_since,
  include_deleted,
}: Readonly<Record<string, string | undefined>>): string {
  return shellOptions({ since: stored_since }) + (include_deleted === 'true' ? ' --include-deleted' : '');
}

function withoutPeople(filter: Readonly<Record<string, string | undefined>>) {
  const shown = Object.entries(filter).filter(([name]) => !personFields.has(name));
  return Object.fromEntries(shown);
}

function RecordTable({
  type,
  records,
}: {
  readonly type: ResourceType;
  readonly records: readonly StoredRecord[];
}) {
  const columns = fieldNames(type).map((field) => ({
    title: field,
    numeric: isNumeric(type, field),
    cell: (record: StoredRecord) => <Value type={type} field={field} value={record[field]} />,
  }));
  const { idField } = resources[type];
  return (
    <Table
      caption={typeName(type)}
      columns={columns}
      rows={records}
      keyOf={(record) => String(record[idField])}
      wide
    />
  );
}

const filterNames: Readonly<Record<string, string>> = {
  shop_id: 'Shop id',
  category_id: 'Category id',
  tag_id: 'Tag id',
  keyword_id: 'Keyword id',
  student_id: 'Student id',
};

function RecordFilters({ type }: { readonly type: ResourceType }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const filter: Readonly<Record<string, string | undefined>> = useFilter(type);
  const change = useChangeFilter();
  return (
    <Filters folded={!isFiltered(filter)}>
      <SelectFilter
        label="Type"
        any="Choose a type"
        value={type}
        onChange={(value) => value && navigate({ to: '/data/$type', params: { type: value }, search: {} })}
        choices={typeChoices(resourceTypes)}
      />
      {Object.keys(resources[type].references).map((field) => (
        <TextFilter
          key={field}
          label={filterNames[field] ?? field}
          value={filter[field]}
          onChange={(value) => change(field, value)}
        />
      ))}
      <TimeFilter
        label="Stored since"
        value={search.stored_since}
        onChange={(value) => change('stored_since', value)}
      />
      <CheckFilter
        label="Include deleted records"
        checked={search.include_deleted === 'true'}
        onChange={(checked) => change('include_deleted', checked ? 'true' : undefined)}
      />
    </Filters>
  );
}

function NoRecords({ type, filtered }: { readonly type: ResourceType; readonly filtered: boolean }) {
  const name = type.replaceAll('-', ' ');
  const all = (
    <Link to="/data/$type" params={{ type }}>
      Show all {name}
    </Link>
  );
  return (
    <NothingFound filtered={filtered} one="record" all={all}>
      <Empty title={`No ${name} are stored.`}>
        <p>
          <Link to="/upload-file">Upload a file</Link>, here or from a terminal:
        </p>
        <Line text={`intake upload ${type}.csv`} />
      </Empty>
    </NothingFound>
  );
}
