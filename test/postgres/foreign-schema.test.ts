import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openPostgres } from '../../cli/deployment/postgres-database.ts';
import { runChecks } from '../../cli/reports/checks/check.ts';
import { postgresChecks } from '../../cli/reports/checks/postgres-checks.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { migratePostgres, migrationFile } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../lambdas/runtime/store/postgres/schema.ts';
import { type PostgresServer, startPostgres } from './server/postgres-server.ts';

let server: PostgresServer;
let pool: Pool;
let mallory: Pool;

/** A function that would make its caller's rights those of mallory, if a superuser ran it. */
const TAKE_OVER = `CREATE FUNCTION public.take_over() RETURNS trigger LANGUAGE plpgsql AS
  $f$ BEGIN ALTER ROLE mallory SUPERUSER; RETURN NEW; END $f$`;

beforeAll(async () => {
  server = await startPostgres('foreign-schema');
  pool = new Pool({ connectionString: server.url });
  await pool.query('CREATE ROLE mallory LOGIN; GRANT CREATE ON DATABASE postgres TO mallory');
  await pool.query('GRANT CREATE ON SCHEMA public TO mallory');
  mallory = new Pool({ connectionString: server.url.replace('postgres@', 'mallory@') });
  await mallory.query(TAKE_OVER);
});

beforeEach(() => pool.query('DROP SCHEMA IF EXISTS mailroom CASCADE'));

afterAll(async () => {
  await mallory.end();
  await pool.end();
  await server.close();
});

const MIGRATION_TABLE =
  'CREATE TABLE mailroom.migration (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())';

const TRIGGER = 'BEFORE INSERT ON mailroom.migration FOR EACH ROW EXECUTE FUNCTION public.take_over()';

/** Objects that another login has made before a migration, by who runs the statements. */
const BEFORE: readonly (readonly [string, RegExp, { readonly owner?: string; readonly mallory?: string }])[] =
  [
    [
      'its schema, with a table and a trigger',
      /schema, of mallory|migration/,
      { mallory: `CREATE SCHEMA mailroom; ${MIGRATION_TABLE}; CREATE TRIGGER t ${TRIGGER}` },
    ],
    [
      'its table in our schema',
      /relation migration, of mallory/,
      {
        owner: `CREATE SCHEMA mailroom; GRANT USAGE, CREATE ON SCHEMA mailroom TO mallory`,
        mallory: `${MIGRATION_TABLE}; CREATE TRIGGER t ${TRIGGER}`,
      },
    ],
    [
      'a right to create',
      /right to create objects, of mallory/,
      { owner: 'CREATE SCHEMA mailroom; GRANT CREATE ON SCHEMA mailroom TO mallory' },
    ],
    [
      'the right of all to create',
      /right to create objects, of PUBLIC/,
      { owner: 'CREATE SCHEMA mailroom; GRANT CREATE ON SCHEMA mailroom TO PUBLIC' },
    ],
    [
      'a trigger of a function on our table',
      /trigger t of migration, of mallory/,
      {
        owner: `CREATE SCHEMA mailroom; ${MIGRATION_TABLE}; GRANT USAGE ON SCHEMA mailroom TO mallory; GRANT TRIGGER ON mailroom.migration TO mallory`,
        mallory: `CREATE TRIGGER t ${TRIGGER}`,
      },
    ],
    [
      'a sequence',
      /relation s, of mallory/,
      {
        owner: 'CREATE SCHEMA mailroom; GRANT USAGE, CREATE ON SCHEMA mailroom TO mallory',
        mallory: 'CREATE SEQUENCE mailroom.s',
      },
    ],
    [
      'a function',
      /function f, of mallory/,
      {
        owner: 'CREATE SCHEMA mailroom; GRANT USAGE, CREATE ON SCHEMA mailroom TO mallory',
        mallory: "CREATE FUNCTION mailroom.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
      },
    ],
  ];

test.each(BEFORE)('a migration refuses %s, by the command and by the file', async (_name, found, made) => {
  if (made.owner) await pool.query(made.owner);
  if (made.mallory) await mallory.query(made.mallory);
  await expect(migratePostgres(nodePostgres(pool))).rejects.toMatchObject({
    code: 'FOREIGN_SCHEMA',
    message: expect.stringMatching(found),
  });
  const [first] = MIGRATIONS;
  if (first === undefined) throw new Error('MIGRATIONS is empty.');
  await expect(pool.query(migrationFile(first))).rejects.toMatchObject({
    message: expect.stringContaining('does not belong to the role that migrates it'),
  });
  const { rows } = await pool.query(
    "SELECT rolsuper, to_regclass('mailroom.event') AS made FROM pg_roles WHERE rolname = 'mallory'",
  );
  expect(rows).toEqual([{ rolsuper: false, made: null }]);
});

test('doctor finds a trigger and an object of another login in a migrated schema', async () => {
  await migratePostgres(nodePostgres(pool));
  const open = await openPostgres(server.url);
  const problems = async () => (await runChecks(postgresChecks(open, () => Date.now()))).problems;
  expect(await problems()).toEqual([]);
  await pool.query(
    'GRANT USAGE, CREATE ON SCHEMA mailroom TO mallory; GRANT TRIGGER ON mailroom.event TO mallory',
  );
  await mallory.query('CREATE VIEW mailroom.v AS SELECT 1 AS one');
  await mallory.query(
    'CREATE TRIGGER t BEFORE INSERT ON mailroom.event FOR EACH ROW EXECUTE FUNCTION public.take_over()',
  );
  expect((await problems()).map(({ problem, text }) => [problem, /^[^:]*/.exec(text)?.[0]])).toEqual([
    ['foreign-object', 'the schema mailroom has the relation v of mallory'],
    ['foreign-object', 'the schema mailroom has the right to create objects of mallory'],
    ['foreign-object', 'the schema mailroom has the trigger t of event of mallory'],
  ]);
  await open.end();
});
