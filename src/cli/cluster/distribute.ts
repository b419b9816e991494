import { parseArgs } from 'node:util';
import { limits } from '../../limits.ts';
import { distributionSteps, lockDistribution, refuseDistribution } from '../../operator/distribute.ts';
import { commandError } from '../arguments/help.ts';
import { onCoordinator } from '../database/coordinator.ts';

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { 'dry-run': { type: 'boolean', default: false }, shards: { type: 'string' } },
  });
  const shards = readShards(values.shards);
  await onCoordinator('distribute', async (coordinator) => {
    await refuseDistribution(coordinator, shards);
    await lockDistribution(coordinator);
    const steps = await distributionSteps(coordinator, shards);
    for (const step of steps) {
      console.log(`${step};`);
      if (!values['dry-run']) await coordinator.query(step);
    }
    if (steps.length === 0) console.log('The tables were already distributed.');
    else if (!values['dry-run'])
      console.log(
        'The tables are distributed. Start the processes of Intake; intake-server cluster shows the nodes.',
      );
  });
}

function readShards(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const shards = /^\d{1,4}$/.test(given) ? Number(given) : 0;
  if (shards >= 1 && shards <= limits.clusterShardsMax) return shards;
  throw commandError(`--shards must be a whole number from 1 to ${limits.clusterShardsMax}; not "${given}"`);
}
