import { parseArgs } from 'node:util';
import { readDatabaseConfig } from '../config.ts';
import { migrate } from '../store/migrate.ts';

export async function run(args: string[]): Promise<void> {
  parseArgs({ args, options: {} });
  const { applied, missingRoles } = await migrate(readDatabaseConfig().databaseUrl);
  for (const name of applied) console.log(`applied ${name}`);
  console.log(applied.length > 0 ? 'The schema is up to date.' : 'The schema was up to date already.');
  for (const role of missingRoles) {
    console.log(
      `The role ${role} does not exist, and this one may not create it. To serve with no more rights than needed, let a ` +
        `superuser run: create role ${role}; and then run migrate again.`,
    );
  }
}
