import { getRouteApi, useLocation } from '@tanstack/react-router';
import { itemTypes } from '../../../../client/src/generated/resources.ts';
import { schemas } from '../../../../client/src/generated/schemas.ts';
import { CheckFilter, Filters, SelectFilter, TextFilter, TimeFilter } from '../../parts/filters.tsx';

const route = getRouteApi('/frame/interactions');

const interactionTypes = (schemas.interactions.properties.interaction_type?.enum ?? []).filter(
  (name) => name !== null,
);

const asChoices = (values: readonly string[]) => values.map((value) => ({ value, text: value }));

type PersonField = 'student_id' | 'user_id';

export function InteractionFilters() {
  const search = route.useSearch();
  const person = useLocation({ select: ({ state }) => state.person });
  const navigate = route.useNavigate();
  const change = (name: keyof typeof search, value: string | undefined) =>
    navigate({ search: { ...search, [name]: value }, state: true, replace: true });
  // Ids of people stay out of the address.
  const changePerson = (name: PersonField, value: string | undefined) => {
    const { [name]: _, ...others } = person ?? {};
    return navigate({
      search: true,
      state: { person: value === undefined ? others : { ...others, [name]: value } },
      replace: true,
    });
  };
  return (
    <Filters>
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
        onChange={(value) => changePerson('student_id', value)}
      />
      <TextFilter
        label="User id"
        value={person?.user_id}
        onChange={(value) => changePerson('user_id', value)}
      />
      <CheckFilter
        label="Live"
        checked={search.live !== undefined}
        onChange={(checked) => change('live', checked ? 'on' : undefined)}
      />
    </Filters>
  );
}
