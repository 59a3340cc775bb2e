import { readdir } from 'node:fs/promises';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { expect, onTestFinished, test } from 'vitest';
import { type MariadbServer, startMariadb } from './server/mariadb-server.ts';

async function startedForTest(name: string): Promise<MariadbServer> {
  const server = await startMariadb(name);
  onTestFinished(() => server.close());
  return server;
}

test('a server that starts leaves the temporary tables of another one', async () => {
  const { port } = await startedForTest('mysql-first');
  const connection = await createConnection({ host: '127.0.0.1', port, user: 'root' });
  onTestFinished(() => connection.end());
  await connection.query('CREATE DATABASE first');
  await connection.query('CREATE TEMPORARY TABLE first.kept (id INT) ENGINE=Aria');
  const [[settings]] = await connection.query<RowDataPacket[]>('SELECT @@tmpdir AS folder');
  const temporary = async () =>
    (await readdir(settings?.folder)).filter((name) => name.startsWith('#sql-temptable'));
  const before = await temporary();
  expect(before).toHaveLength(2);
  await startedForTest('mysql-second');
  expect(await temporary()).toEqual(before);
});
