import type { QueryClient } from '@tanstack/react-query';

/** Invalidates cached data about rejections after some were replayed, discarded or corrected. */
export async function forgetRejections(client: QueryClient): Promise<void> {
  const outdated = ['rejections', 'overview', 'daily-uploads', 'pages', 'record'];
  await Promise.all(outdated.map((first) => client.invalidateQueries({ queryKey: [first] })));
}
