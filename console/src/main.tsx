import { takeLinkToken } from './frame/link-token.ts';
import { start } from './frame/start.tsx';
import { router } from './routes.tsx';

// Before the router reads the address.
takeLinkToken();
start(router);
