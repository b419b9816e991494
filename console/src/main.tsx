import { takeLinkToken } from './frame/link-token.ts';
import { start } from './frame/start.tsx';
import { router } from './routes.tsx';

// This must run before the router reads the URL.
takeLinkToken();
start(router);
