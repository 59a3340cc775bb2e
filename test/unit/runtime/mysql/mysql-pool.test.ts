import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type MysqlPoolOptions, mysqlPool } from '../../../../lambdas/runtime/mysql/mysql-pool.ts';

const ADDRESS = { host: 'db.aws', port: 3_306, database: 'shop', user: 'orders', ssl: true };

afterEach(() => vi.restoreAllMocks());

/** Pools of a server that accepts one password. */
function server(accepted: { password: string }) {
  const pools: MysqlPoolOptions[] = [];
  const connection = { query: async () => [[]] as const, release: () => {}, destroy: () => {} };
  const createPool = (options: MysqlPoolOptions) => {
    pools.push(options);
    const getConnection = async () => {
      if (options.password !== accepted.password)
        throw Object.assign(new Error('Access denied'), { errno: 1045 });
      return connection;
    };
    const end = async () => {};
    return { getConnection, query: async () => (await getConnection()).query(), end };
  };
  return { createPool, pools };
}

describe('a pool of mysql2', () => {
  test('logs in with the password of the address', async () => {
    const { createPool, pools } = server({ password: 'local' });
    await mysqlPool(createPool, { ...ADDRESS, password: 'local' }).getConnection();
    expect(pools).toMatchObject([{ host: 'db.aws', user: 'orders', ssl: { verifyIdentity: true } }]);
  });

  test('reads a secret again after its rotation, and only then', async () => {
    const secret = { password: 'first' };
    const send = vi.spyOn(SecretsManagerClient.prototype, 'send');
    send.mockImplementation(async () => ({ SecretString: JSON.stringify(secret) }));
    const accepted = { password: 'first' };
    const { createPool, pools } = server(accepted);
    const pool = mysqlPool(createPool, { ...ADDRESS, secretArn: 'arn' });
    await pool.getConnection();
    await pool.getConnection();
    expect(send).toHaveBeenCalledTimes(1);
    accepted.password = secret.password = 'second';
    await pool.getConnection();
    expect(pools.map(({ password }) => password)).toEqual(['first', 'second']);
    expect(send).toHaveBeenCalledTimes(2);
    accepted.password = 'third';
    await expect(pool.getConnection()).rejects.toThrow('Access denied');
  });

  test('answers the login of IAM with a new token for each connection', async () => {
    vi.stubEnv('AWS_REGION', 'eu-west-1');
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
    const { createPool, pools } = server({ password: '' });
    mysqlPool(createPool, { ...ADDRESS, iam: true });
    const answer = await pools[0]?.authPlugins?.mysql_clear_password()();
    expect(String(answer)).toMatch(/^db\.aws:3306\/\?Action=connect&DBUser=orders.*\0$/);
    vi.unstubAllEnvs();
  });
});
