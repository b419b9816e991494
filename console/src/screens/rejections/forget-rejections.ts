import type { QueryClient } from '@tanstack/react-query';

/** After rejections were replayed, discarded or corrected: cached data about them is out of date. */
export async function forgetRejections(client: QueryClient): Promise<void> {
  const outdated = ['rejections', 'overview', 'daily-uploads', 'pages', 'record'];
  await Promise.all(outdated.map((first) => client.invalidateQueries({ queryKey: [first] })));
}
