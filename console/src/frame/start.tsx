import '../styles/index.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { type AnyRouter, RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from '../api/query-client.ts';
import { applyTheme, keptTheme } from './theme.ts';

/** Renders the screen for the current URL. */
export function start(router: AnyRouter): void {
  applyTheme(keptTheme());
  const root = document.getElementById('root');
  if (root === null) throw new Error('The page has no element with the id root');
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
