import { expect, test } from 'vitest';
import { runMailroom } from '../../../cli/program.ts';
import { capturedIo } from '../../support/captured-io.ts';

async function run(...argv: string[]) {
  const { io, written } = capturedIo();
  const code = await runMailroom(['cdc', 'config', ...argv], io);
  return { code, ...written };
}

const URL = 'postgresql://debezium@db.example/shop';

test('prints a connector that Connect accepts as it is, also with --json', async () => {
  const text = await run('--database', URL);
  expect(text).toMatchObject({ code: 0, err: '' });
  const connector = JSON.parse(text.out);
  expect(JSON.parse((await run('--database', URL, '--json')).out)).toEqual(connector);
  expect(connector).toMatchSnapshot();
  for (const value of Object.values(connector.config)) expect(typeof value).toBe('string');
});

test('names everything after --name, and chooses topics', async () => {
  const { out } = await run(
    '--database',
    'postgres',
    '--name',
    'shop',
    '--topics',
    'one',
    '--retention',
    '30',
  );
  expect(JSON.parse(out)).toMatchObject({
    name: 'shop',
    config: {
      'slot.name': 'shop',
      'database.hostname': `\${env:PGHOST}`,
      'heartbeat.action.query': "SELECT mailroom.delete_captured('shop', interval '30 days')",
      'transforms.outbox.route.topic.replacement': 'shop.events',
    },
  });
});

test('the regular expression of odd names matches what no topic can be named', async () => {
  const { config } = JSON.parse((await run('--database', 'postgres')).out);
  const odd = new RegExp(`^${config['transforms.other.regex'].replace('(?s)', '')}$`, 's');
  for (const name of ['mailroom.a b', 'mailroom.€', 'mailroom.a\nb', `mailroom.${'x'.repeat(250)}`])
    expect([name, odd.test(name)]).toEqual([name, true]);
  for (const name of ['mailroom.order', '__debezium-heartbeat.mailroom']) expect(odd.test(name)).toBe(false);
});

test('prints the statements for the owner', async () => {
  const { out } = await run('--database', 'postgres', '--sql', '--slot-cap', '512MB');
  expect(out).toContain("CREATE PUBLICATION mailroom FOR TABLE mailroom.event WHERE (published_by = 'cdc')");
  expect(out).toContain("max_slot_wal_keep_size = '512MB'");
});

test.each([
  ['mariadb://debezium@db.example', 'io.debezium.connector.mariadb.MariaDbConnector', 'verify-full'],
  [
    'mariadb://debezium@db.example?ssl-mode=VERIFY_CA',
    'io.debezium.connector.mariadb.MariaDbConnector',
    'verify-ca',
  ],
  ['mysql://debezium@127.0.0.1', 'io.debezium.connector.mysql.MySqlConnector', 'disabled'],
  ['mysql', 'io.debezium.connector.mysql.MySqlConnector', 'verify_identity'],
])('prints a connector for %s', async (database, connectorClass, tls) => {
  const { code, out, err } = await run('--database', database, '--name', 'shop');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const { config } = JSON.parse(out);
  expect(config).toMatchObject({ 'connector.class': connectorClass, 'database.ssl.mode': tls });
  const other = JSON.parse((await run('--database', database, '--name', 'other')).out);
  expect(other.config['database.server.id']).not.toBe(config['database.server.id']);
});

test('prints the connector and the statements for MariaDB', async () => {
  const { out } = await run('--database', 'mariadb', '--name', 'shop', '--retention', '30');
  expect(JSON.parse(out)).toMatchSnapshot();
  const sql = (await run('--database', 'mariadb', '--sql')).out;
  expect(sql).toContain('GRANT EXECUTE ON PROCEDURE mailroom.delete_captured');
});

test.each([
  [['--database', 'mysql://ada:secret@host'], /has a password/],
  [['--database', 'mysql://host'], /no user/],
  [['--database', 'mariadb://ada@host?tls=1'], /"tls" is not supported/],
  [
    ['--database', 'mysql://ada@host?ssl-ca=/no/such/file.pem'],
    /ssl-ca names a file of this machine.*trust store/,
  ],
  [['--database', 'mysql', '--slot-cap', '20GB'], /--slot-cap is for PostgreSQL/],
  [['--database', 'oracle://ada@host/shop'], /--database/],
  [[], /--database is missing/],
  [['--database', 'postgresql://ada:secret@host/shop'], /has a password/],
  [['--database', 'postgresql://host/shop'], /no user/],
  [['--database', 'postgresql://ada@host'], /no database/],
  [['--database', `${URL}?options=-c`], /"options" is not supported/],
  [['--database', URL, '--name', 'a-b'], /--name is "a-b"/],
  [['--database', URL, '--name', "x'; DROP"], /--name/],
  [['--database', URL, '--retention', '0'], /--retention is "0"/],
  [['--database', URL, '--slot-cap', '-1'], /--slot-cap/],
  [['--database', URL, '--topics', 'table'], /topics/],
])('refuses %j', async (argv, problem) => {
  const refused = await run(...argv);
  expect(refused.code).toBe(2);
  expect(refused.err.replaceAll(/\s+/g, ' ')).toMatch(problem);
  expect(refused.err).not.toContain('secret');
});
