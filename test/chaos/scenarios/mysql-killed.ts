import { databaseKilled } from '../database-killed.ts';

/** The MariaDB of the orders is killed. */
export const mysqlKilled = databaseKilled('mysql', 'MariaDB');
