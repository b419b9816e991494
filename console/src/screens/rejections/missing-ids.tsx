import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { uploadPermission } from '../../api/permissions.ts';
import { type RejectionFilter, rejectionSampleQuery } from '../../api/rejections.ts';
import { countOf, formatNumber } from '../../format/format.ts';
import { referencedType } from '../../format/personal.ts';
import { usePermits } from '../../frame/signed-in.tsx';
import { Answer } from '../../parts/answer.tsx';
import { Table } from '../../parts/table.tsx';
import { Line } from '../../parts/terminal.tsx';
import { countMissingIds } from './count-missing-ids.ts';

const idsShown = 20;

/** Lists the records that must be uploaded before a replay can succeed. */
export function MissingIds({ filter, field }: { readonly filter: RejectionFilter; readonly field: string }) {
  const may = usePermits();
  const sample = useQuery(rejectionSampleQuery(filter));
  const target = referencedType(filter.type ?? '', field);
  return (
    <section className="card">
      <h2>Missing ids</h2>
      <Answer query={sample} what="The missing ids">
        {({ rejections, next_cursor }) => {
          const missing = countMissingIds(rejections, field);
          if (missing.length === 0)
            return <p className="muted">The kept rejections do not contain these ids.</p>;
          return (
            <>
              <p>
                {countOf(missing.length, 'id')} {next_cursor === null ? '' : 'in the first 1,000 rejections '}
                {target ? `not found among ${target.replaceAll('-', ' ')}` : 'not found'}.{' '}
                {target && may(uploadPermission(target)) ? (
                  <>
                    <Link to="/upload-file">Upload the missing {target.replaceAll('-', ' ')}</Link>, here or
                    from a terminal, then replay this group.
                  </>
                ) : (
                  'Upload the missing records, then replay this group.'
                )}
              </p>
              {target && <Line text={`intake upload ${target}.csv`} />}
              <Table
                caption="Missing ids"
                columns={[
                  { title: 'Id', cell: ({ id }) => <code className="id">{id}</code> },
                  { title: 'Rejections', numeric: true, cell: ({ count }) => formatNumber(count) },
                ]}
                rows={missing.slice(0, idsShown)}
                keyOf={({ id }) => id}
              />
              {missing.length > idsShown && (
                <details>
                  <summary>All {formatNumber(missing.length)} ids, one per line</summary>
                  <Line text={missing.map(({ id }) => id).join('\n')} />
                </details>
              )}
            </>
          );
        }}
      </Answer>
    </section>
  );
}
