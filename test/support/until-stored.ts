import { setTimeout as sleep } from 'node:timers/promises';

interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests check the shape, which a type would only assume.
  readonly body: any;
}

/**
 * Repeats an upload until it is stored, as a client does. On a busy machine, uploads may time out if many of them run
 * concurrently.
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
  // Invalid records keep their own errors, which may come first.
  const isBroken = ({ code }: { code: string }) => code === 'not_stored';
  return status === 503 || batches.some(({ data }) => data.errors.some(isBroken));
}
