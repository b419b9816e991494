import { afterAll } from 'vitest';
import { dropTestDatabases } from './database.ts';

// Set up before a test file's own hooks, so it runs after them.
afterAll(dropTestDatabases);
