import { mariadb } from './mysql/mysql-database.ts';
import type { Part } from './part.ts';
import { measure } from './sql/measure.ts';

/** Measures the relay of a MySQL database, as `postgres` does that of PostgreSQL. */
export const mysql: Part = {
  name: 'mysql',
  title: 'the relay on MariaDB',
  run: (settings) => mariadb.run((create) => measure(mariadb, create, settings)),
};
