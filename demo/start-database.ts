import type { DatabaseEngine } from '../lambdas/runtime/base/database-engine.ts';
import type { DemoDatabase } from './database.ts';

/**
 * Starts a database on the loopback address. Nothing of another one is loaded. It ends with this process, however that ends.
 *
 * @param settings - of the server
 */
export async function startDemoDatabase(
  engine: DatabaseEngine,
  step: (line: string) => void,
  settings: Readonly<Record<string, string>> = {},
): Promise<DemoDatabase> {
  if (engine === 'mysql') {
    const { startDemoMysql } = await import('./mysql.ts');
    return startDemoMysql(step, settings);
  }
  const { startDemoPostgres } = await import('./postgres.ts');
  return startDemoPostgres(step, settings);
}
