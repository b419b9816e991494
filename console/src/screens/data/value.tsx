import { Link } from '@tanstack/react-router';
import { type ResourceType, resources } from '../../../../client/src/generated/resources.ts';
import { type FieldSchema, schemas } from '../../../../client/src/generated/schemas.ts';
import { formatExact } from '../../format/format.ts';
import { referencedType } from '../../format/personal.ts';
import { Time } from '../../format/time.tsx';
import { None } from '../../parts/notices.tsx';
import { RecordLink } from './record-link.tsx';

interface ValueProps {
  readonly type: ResourceType;
  readonly field: string;
  readonly value: unknown;
}

/** Shows one value from a record. Ids link to their records. */
export function Value({ type, field, value }: ValueProps) {
  if (value === null || value === undefined) return <None />;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return isCoordinate(field) ? String(value) : formatExact(value);
  if (typeof value !== 'string') return <code>{JSON.stringify(value)}</code>;
  const target = field === resources[type].idField ? type : referencedType(type, field);
  if (target !== undefined)
    return (
      <RecordLink type={target} id={value}>
        <code className="id" title={value}>
          {value}
        </code>
      </RecordLink>
    );
  if (field === 'user_id')
    return (
      <Link to="/interactions" state={{ person: { user_id: value } }}>
        <code className="id" title={value}>
          {value}
        </code>
      </Link>
    );
  const { format }: FieldSchema = schemas[type].properties[field] ?? { type: 'string' };
  return format === 'date-time' ? <Time value={value} /> : value;
}

/**
 * Returns whether the field is a coordinate. Coordinates are not formatted for the locale, because users mostly copy them.
 */
function isCoordinate(field: string): boolean {
  return field === 'latitude' || field === 'longitude';
}

export function isNumeric(type: ResourceType, field: string): boolean {
  return [schemas[type].properties[field]?.type].flat().includes('number');
}

export function fieldNames(type: ResourceType): readonly string[] {
  return Object.keys(schemas[type].properties);
}
