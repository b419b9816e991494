import { setTimeout as sleep } from 'node:timers/promises';

interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on the shape; a type would assume it.
  readonly body: any;
}

/**
 * Uploads, and sends again what was not stored, as a client is told to: of many at once on a busy machine, some wait too
 * long for their turn.
 */
export async function untilStored<T extends Answered>(upload: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await upload();
    if (!isToBeSentAgain(answer)) return answer;
    await sleep(50);
  }
}

function isToBeSentAgain({ status, body }: Answered): boolean {
  const batches: { data: { errors: { code: string }[] } }[] = body.batches ?? [];
  return status === 503 || batches.some(({ data }) => data.errors[0]?.code === 'not_stored');
}
