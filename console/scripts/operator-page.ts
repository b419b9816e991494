import type { Plugin } from 'vite';

/** Makes the development server return the operator's page for every URL, as the admin port does. */
export function operatorPage(base: string): Plugin {
  return {
    name: 'operator-page',
    apply: 'serve',
    configureServer({ middlewares }) {
      middlewares.use((request, _response, next) => {
        if (request.headers.accept?.includes('text/html')) request.url = `${base}operator.html`;
        next();
      });
    },
  };
}
