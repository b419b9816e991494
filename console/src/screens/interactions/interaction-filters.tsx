import { getRouteApi, useLocation } from '@tanstack/react-router';
import { itemTypes } from '../../../../client/src/generated/resources.ts';
import { schemas } from '../../../../client/src/generated/schemas.ts';
import { CheckFilter, Filters, SelectFilter, TextFilter, TimeFilter } from '../../parts/filters.tsx';
import { useChangeFilter } from '../../parts/search/use-change-filter.ts';

const route = getRouteApi('/frame/interactions');

const interactionTypes = (schemas.interactions.properties.interaction_type?.enum ?? []).filter(
  (name) => name !== null,
);

const asChoices = (values: readonly string[]) => values.map((value) => ({ value, text: value }));

export function InteractionFilters({ folded }: { readonly folded: boolean }) {
  const search = route.useSearch();
  const person = useLocation({ select: ({ state }) => state.person });
  const change = useChangeFilter();
  return (
    <Filters folded={folded}>
      <SelectFilter
        label="Interaction"
        value={search.interaction_type}
        onChange={(value) => change('interaction_type', value)}
        choices={asChoices(interactionTypes)}
      />
      <SelectFilter
        label="Item"
        value={search.item_type}
        onChange={(value) => change('item_type', value)}
        choices={asChoices(Object.keys(itemTypes))}
      />
      <SelectFilter
        label="Source"
        value={search.source}
        onChange={(value) => change('source', value)}
        choices={[{ value: 'SERVICE', text: 'From a recommendation' }]}
      />
      <TimeFilter label="Received from" value={search.from} onChange={(value) => change('from', value)} />
      <TimeFilter label="Received before" value={search.to} onChange={(value) => change('to', value)} />
      <TextFilter label="Item id" value={search.item_id} onChange={(value) => change('item_id', value)} />
      <TextFilter
        label="Student id"
        value={person?.student_id}
        onChange={(value) => change('student_id', value)}
      />
      <TextFilter label="User id" value={person?.user_id} onChange={(value) => change('user_id', value)} />
      <CheckFilter
        label="Live"
        checked={search.live !== undefined}
        onChange={(checked) => change('live', checked ? 'on' : undefined)}
      />
    </Filters>
  );
}
