import { expect, test } from 'vitest';
import { migrationFile } from '../../../../lambdas/runtime/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../../../lambdas/runtime/store/postgres/schema.ts';

test.each(MIGRATIONS)('docs/postgres has the file of migration $version', async (migration) => {
  const name = `${String(migration.version).padStart(4, '0')}.sql`;
  await expect(migrationFile(migration)).toMatchFileSnapshot(`../../../../docs/postgres/${name}`);
});
