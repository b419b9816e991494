import { afterAll } from 'vitest';
import { dropTestDatabases } from './database.ts';

// This hook is registered before the test file's hooks, so it runs after them.
afterAll(dropTestDatabases);
