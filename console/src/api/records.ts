import { queryOptions } from '@tanstack/react-query';
import { resources, type UploadType } from '../../../client/src/generated/resources.ts';
import { isUploadAnswer } from '../../../client/src/uploading/send-cuts.ts';
import { pagesQuery } from './pages.ts';
import { call, type Query } from './request.ts';
import type { Receipt, ReceiptPage, RecordPage, Rejection, StoredRecord, UploadAnswer } from './types.ts';

export function recordPagesQuery(type: string, query: Query) {
  return pagesQuery<RecordPage>(`/v1/data/${type}`, { ...query, limit: 50 });
}

export function recordQuery(type: string, id: string) {
  return queryOptions({
    queryKey: ['record', type, id],
    queryFn: ({ signal }) => call<StoredRecord>(`/v1/data/${type}/${encodeURIComponent(id)}`, { signal }),
  });
}

export function receiptPagesQuery(query: Query) {
  return pagesQuery<ReceiptPage>('/v1/requests', { ...query, limit: 25 });
}

export function receiptQuery(requestId: string) {
  return queryOptions({
    queryKey: ['receipt', requestId],
    queryFn: ({ signal }) => call<Receipt>(`/v1/requests/${encodeURIComponent(requestId)}`, { signal }),
  });
}

/** Uploads one record. */
export function uploadRecord(
  type: UploadType,
  record: StoredRecord,
  { dryRun, mode }: { readonly dryRun: boolean; readonly mode: Rejection['mode'] },
): Promise<UploadAnswer> {
  return call<UploadAnswer>(resources[type].path, {
    method: 'POST',
    query: { dry_run: dryRun ? true : undefined, mode: mode === 'merge' ? mode : undefined },
    body: { records: [record] },
    isAnswer: (answer) => isUploadAnswer(answer, 1),
  });
}
