import type { FastifyBaseLogger } from 'fastify';
import type { DetourLog } from '../../postgres/cluster/node-detours.ts';

export function detourLog(log: FastifyBaseLogger): DetourLog {
  return {
    begun: (what) =>
      log.warn(
        what,
        `cannot connect to the worker ${what.worker} (${what.cause}); the coordinator forwards its requests, which takes more ` +
          'CPU. Check that the worker is running, lets this login in, and has a certificate for this name that sslrootcert trusts',
      ),
    ended: (what) => log.info(what, `can connect to the worker ${what.worker} again`),
  };
}
