import type { Plugin } from 'vite';

/** Lets the development server answer every page with the operator's, as the admin port does. */
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
