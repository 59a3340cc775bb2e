import { sql } from 'drizzle-orm';
import { drizzle as drizzleOf } from 'drizzle-orm/mysql2';
import knexOf from 'knex';
import { CamelCasePlugin, CompiledQuery, Kysely, MysqlDialect } from 'kysely';
import { createPool as createCallbackPool, type PoolOptions } from 'mysql2';
import { createPool } from 'mysql2/promise';
import { DataSource } from 'typeorm';
import { kysely, typeOrm } from '../../lambdas/runtime/database/orm-databases.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { drizzle, knex } from '../../lambdas/runtime/mysql/orm-databases.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';

/** A driver or an ORM, connected. */
export interface Layer<Tx = unknown> {
  readonly database: Database<Tx>;
  /** Runs a function in a transaction that the layer itself begins and ends. */
  readonly own: <T>(run: (tx: Tx) => Promise<T>) => Promise<T>;
  /** Inserts a row of `shop.street_place` as an application does. */
  readonly insert: (tx: Tx, id: number) => Promise<unknown>;
  /** The connection or pool that an application could pass by mistake, where a transaction is expected. */
  readonly outside: Tx;
  readonly end: () => Promise<unknown>;
}

const INSERT = 'INSERT INTO shop.street_place (id) VALUES (?)';

const anyTx = <Tx>(layer: Layer<Tx>) => layer as Layer;

/** Each layer for which Mailroom has an adapter, on connections with the given options. */
export const LAYERS: Readonly<Record<string, (options: PoolOptions) => Promise<Layer>>> = {
  mysql2: async (options) => {
    const pool = createPool(options);
    return anyTx({
      database: mysql2(pool),
      own: async (run) => {
        const connection = await pool.getConnection();
        await connection.beginTransaction();
        try {
          const result = await run(connection);
          await connection.commit();
          return result;
        } catch (error) {
          await connection.rollback();
          throw error;
        } finally {
          connection.release();
        }
      },
      insert: (tx, id) => tx.query(INSERT, [id]),
      outside: pool as never,
      end: () => pool.end(),
    });
  },
  Drizzle: async (options) => {
    const pool = createPool(options);
    const db = drizzleOf({ client: pool, casing: 'camelCase' });
    type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0];
    return anyTx<Tx>({
      database: drizzle(db, sql),
      own: (run) => db.transaction(run),
      insert: (tx, id) => tx.execute(sql`INSERT INTO shop.street_place (id) VALUES (${id})`),
      outside: db as never,
      end: () => pool.end(),
    });
  },
  'Kysely with a plugin for names': async (options) => {
    const db = new Kysely<{ 'shop.streetPlace': { id: number } }>({
      dialect: new MysqlDialect({ pool: createCallbackPool(options) }),
      plugins: [new CamelCasePlugin()],
    });
    return anyTx({
      database: kysely(db, CompiledQuery.raw),
      own: (run) => db.transaction().execute(run),
      insert: (tx, id) => tx.insertInto('shop.streetPlace').values({ id }).execute(),
      outside: db as never,
      end: () => db.destroy(),
    });
  },
  Knex: async (options) => {
    const db = knexOf({ client: 'mysql2', connection: options as never });
    return anyTx({
      database: knex(db),
      own: (run) => db.transaction(run),
      insert: (tx, id) => tx('shop.street_place').insert({ id }),
      outside: db as never,
      end: () => db.destroy(),
    });
  },
  TypeORM: async ({ host = '', port = 0, user = '', ...extra }) => {
    const source = new DataSource({ type: 'mysql', host, port, username: user, extra });
    await source.initialize();
    return anyTx({
      database: typeOrm(source),
      own: (run) => source.transaction(run),
      insert: (tx, id) => tx.query(INSERT, [id]),
      outside: source.manager,
      end: () => source.destroy(),
    });
  },
};
