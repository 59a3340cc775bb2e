import { databaseKilled } from '../database-killed.ts';

/** The PostgreSQL of the orders is killed. */
export const postgresKilled = databaseKilled('postgres', 'PostgreSQL');
