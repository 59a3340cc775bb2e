import { type App, Stack } from 'aws-cdk-lib';
import { AccountRootPrincipal, PolicyStatement, Role } from 'aws-cdk-lib/aws-iam';
import { beforeAll, describe, expect, test } from 'vitest';
import { orderSystem } from '../../lib/example/order-system.ts';
import { readStage } from '../../lib/example/stage.ts';
import { Mailroom } from '../../lib/index.ts';
import { ACCOUNT, type DeployedPart, deployedParts } from './access/deployed-parts.ts';
import { type Ask, administrator, askOf, type Principal, rolesOf } from './access/permissions.ts';
import { consumersByRole, mailroomTable, ROW_ACTIONS, roleTable } from './access/role-table.ts';
import { synthStage, testApp } from './synth.ts';

/** Every way in which a row can disappear, or be replaced by another. */
const REPLACING = ['DeleteItem', 'BatchWriteItem', 'PartiQLDelete', 'PutItem', 'PartiQLInsert'].map(
  (action) => `dynamodb:${action}`,
);

const READING = ['GetItem', 'BatchGetItem', 'Query', 'PartiQLSelect', 'ConditionCheckItem'].map(
  (action) => `dynamodb:${action}`,
);
const CHANGING = ROW_ACTIONS.filter((action) => !READING.includes(action));

/** The audit and the heartbeat look into every inbox; they must be able to change none. */
const readsAll = ({ name }: Principal) => /Audit|Heartbeat/.test(name);

const inboxKey = (consumer: string) => `INBOX#${consumer}#01a1fba6-4458-7a41-9c37-3f5d2b8e1103`;

let parts: DeployedPart[];
let roles: Principal[];
let ask: Ask;

beforeAll(() => {
  parts = deployedParts(synthStage('prod').app);
  roles = rolesOf(parts);
  ask = askOf(parts);
});

/** Who may do any of `actions` to rows with any of `keys`, as `role action key`. */
async function allowed(
  asked: Ask,
  who: readonly Principal[],
  table: DeployedPart,
  actions: readonly string[],
  keys: readonly (string | undefined)[],
): Promise<string[]> {
  const questions = who.flatMap((role) =>
    actions.flatMap((action) => keys.map((key) => ({ role, action, key }))),
  );
  const answers = await Promise.all(
    questions.map(async ({ role, action, key }) => {
      const verdict = await asked(role, { action, resource: table.arn, key });
      return verdict === 'allow' ? [`${role.name} ${action} ${key}`] : [];
    }),
  );
  return answers.flat();
}

test('what every role may do is what was reviewed', async () => {
  const text = await roleTable(ask, [...roles, administrator()], parts);
  const legend =
    'Who may do what in the stage prod, by the policies of both sides. Rows: a line for each action, a column for each kind of\n' +
    'partition key. Below: only the resources to which the role may do anything.\n' +
    'allow: it may. -: nothing allows it. DENY: a policy forbids it, whatever else allows it.\n\n\n';
  await expect(legend + text).toMatchFileSnapshot('access/role-table.txt');
});

describe('an inbox row', () => {
  const consumers = () => [...new Set(consumersByRole(parts).values())];

  test('can be deleted or replaced by no role: none of their own policies allows it', async () => {
    expect(consumers()).toHaveLength(4);
    const keys = [...consumers().map(inboxKey), undefined];
    expect(await allowed(askOf([]), roles, mailroomTable(parts), REPLACING, keys)).toEqual([]);
  });

  test('can be deleted or replaced by no administrator: the table forbids it', async () => {
    const keys = consumers().map(inboxKey);
    expect(await allowed(ask, [administrator()], mailroomTable(parts), REPLACING, keys)).toEqual([]);
  });

  test('an administrator may read and update inbox rows, and write other rows', async () => {
    const table = mailroomTable(parts);
    const usual = ['dynamodb:GetItem', 'dynamodb:UpdateItem', 'dynamodb:ConditionCheckItem'];
    expect(await allowed(ask, [administrator()], table, usual, [inboxKey('payments')])).toHaveLength(3);
    expect(await allowed(ask, [administrator()], table, REPLACING, ['ORDER#1'])).toHaveLength(5);
  });

  test('no other consumer, no relay and no producer may access an inbox row', async () => {
    const owners = consumersByRole(parts);
    for (const consumer of consumers()) {
      const others = roles.filter(({ arn }) => owners.get(arn) !== consumer);
      const table = mailroomTable(parts);
      expect(await allowed(ask, others, table, CHANGING, [inboxKey(consumer)])).toEqual([]);
      const strangers = others.filter((role) => !readsAll(role));
      expect(await allowed(ask, strangers, table, ROW_ACTIONS, [inboxKey(consumer)])).toEqual([]);
    }
  });
});

describe('the outbox', () => {
  const outbox = 'OUTBOX#2026-11-21T01:09#03';

  test('accepts puts only from publishers: notifications publishes nothing, and may not put', async () => {
    const put = 'dynamodb:PutItem';
    const may = (await allowed(ask, roles, mailroomTable(parts), [put], [outbox])).join('\n');
    for (const name of ['Orders/Api', 'Orders/OrderStatus', 'Payments/', 'Inventory/'])
      expect(may).toContain(name);
    expect(may).not.toContain('Notifications/');
  });

  test('only the relay may read and change outbox rows; publishers may only put them', async () => {
    const others = roles.filter(({ name }) => !/Relay/.test(name));
    const [table, put] = [mailroomTable(parts), 'dynamodb:PutItem'];
    expect(others.length).toBeGreaterThan(4);
    const changes = CHANGING.filter((action) => action !== put);
    expect(await allowed(ask, others, table, changes, [outbox])).toEqual([]);
    const strangers = others.filter((role) => !readsAll(role));
    const reads = ROW_ACTIONS.filter((action) => action !== put);
    expect(await allowed(ask, strangers, table, reads, [outbox])).toEqual([]);
  });

  test('the relay may change outbox rows, but neither add nor delete them', async () => {
    const relay = roles.filter(({ name }) => /Relay/.test(name));
    expect(relay).toHaveLength(2);
    expect(await allowed(ask, relay, mailroomTable(parts), REPLACING, [outbox])).toEqual([]);
  });

  test('only the relay may publish', async () => {
    const buses = parts.filter(({ type }) => type === 'AWS::Events::EventBus');
    const publishers: string[] = [];
    for (const role of roles) {
      for (const { arn } of buses) {
        const verdict = await ask(role, { action: 'events:PutEvents', resource: arn });
        if (verdict === 'allow') publishers.push(role.name);
      }
    }
    expect(publishers).toEqual(['Mailroom/MailroomRelayStreamRole', 'Mailroom/MailroomRelaySweepRole']);
  });

  test('a call is denied as a whole if one of its events has an undeclared source', async () => {
    const relay = roles.filter(({ name }) => /Relay/.test(name));
    const [bus] = parts.filter(({ type }) => type === 'AWS::Events::EventBus');
    const resource = bus?.arn ?? '';
    for (const role of relay) {
      const asked = (...sources: string[]) => ask(role, { action: 'events:PutEvents', resource, sources });
      expect(await asked('orders')).toBe('allow');
      expect(await asked('orders', 'payments', 'inventory')).toBe('allow');
      expect(await asked('notifications')).not.toBe('allow');
      expect(await asked('orders', 'forged')).not.toBe('allow');
      expect(await asked()).not.toBe('allow');
    }
  });
});

describe('the table', () => {
  test('no role may scan, administer or write the table in bulk', async () => {
    const admin = [
      'Scan',
      'UpdateTable',
      'DeleteTable',
      'UpdateTimeToLive',
      'PutResourcePolicy',
      'DeleteResourcePolicy',
    ];
    const bulk = ['BatchGetItem', 'BatchWriteItem', 'PartiQLSelect', 'PartiQLInsert', 'PartiQLDelete'];
    const actions = [...admin, ...bulk].map((action) => `dynamodb:${action}`);
    expect(await allowed(ask, roles, mailroomTable(parts), actions, [undefined])).toEqual([]);
  });
});

describe('the break-glass role', () => {
  const name = 'BreakGlass';

  function breakGlassParts(): DeployedPart[] {
    const stack = new Stack(testApp(), 'Mailroom');
    new Mailroom(stack, 'Mailroom', { breakGlassRole: Role.fromRoleName(stack, 'Role', name) });
    return deployedParts(stack.node.root as App);
  }

  test('alone may delete and replace inbox rows', async () => {
    const made = breakGlassParts();
    const asked = askOf(made);
    const table = mailroomTable(made);
    const breakGlass = administrator(name);
    expect(await allowed(asked, [breakGlass], table, REPLACING, [inboxKey('payments')])).toHaveLength(5);
    expect(await allowed(asked, [administrator()], table, REPLACING, [inboxKey('payments')])).toEqual([]);
  });

  test('gets no permission from that: its own policies state what it may do', async () => {
    const made = breakGlassParts();
    const stranger = { ...administrator(name), policies: [] };
    const table = mailroomTable(made);
    expect(await allowed(askOf(made), [stranger], table, ROW_ACTIONS, [inboxKey('payments')])).toEqual([]);
  });

  test('can be a role of the same stack', () => {
    const stack = new Stack(testApp(), 'Mailroom');
    const role = new Role(stack, 'BreakGlass', { assumedBy: new AccountRootPrincipal() });
    const mailroom = new Mailroom(stack, 'Mailroom', { breakGlassRole: role });
    mailroom.table.grant(role, 'dynamodb:DeleteItem');
    const made = deployedParts(stack.node.root as App);
    expect(JSON.stringify(mailroomTable(made).properties)).toContain(
      `"aws:PrincipalArn":"arn:aws:iam::${ACCOUNT}:role/`,
    );
  });
});

describe('a hole is found', () => {
  /** The order system with a statement more in the role of the payments' function. */
  function withHole(statement: PolicyStatement): DeployedPart[] {
    const app = testApp();
    orderSystem(app, readStage('prod', {}));
    const role = app.node
      .findChild('Payments')
      .node.findChild('Payments')
      .node.findChild('FunctionRole') as Role;
    role.addToPolicy(statement);
    return deployedParts(app);
  }

  test.each([
    ['on any row', {}],
    [
      'on inbox rows',
      {
        conditions: {
          'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['PAYMENT#*', 'INBOX#payments#*'] },
        },
      },
    ],
  ])('the check notices a role that may delete %s', async (_where, props) => {
    const holed = withHole(
      new PolicyStatement({ actions: ['dynamodb:Delete*'], resources: ['*'], ...props }),
    );
    const found = await allowed(askOf([]), rolesOf(holed), mailroomTable(holed), REPLACING, [
      inboxKey('payments'),
    ]);
    expect(found).toEqual([`Payments/PaymentsFunctionRole dynamodb:DeleteItem ${inboxKey('payments')}`]);
  });

  test("the check notices a consumer that may access another's rows", async () => {
    const holed = withHole(new PolicyStatement({ actions: ['dynamodb:UpdateItem'], resources: ['*'] }));
    const found = await allowed(askOf(holed), rolesOf(holed), mailroomTable(holed), ROW_ACTIONS, [
      inboxKey('inventory'),
    ]);
    expect(found).toContain(`Payments/PaymentsFunctionRole dynamodb:UpdateItem ${inboxKey('inventory')}`);
  });

  test('the check notices a table without a resource policy', async () => {
    const bare = parts.map((part) =>
      part === mailroomTable(parts) ? { ...part, properties: { Replicas: [{}] } } : part,
    );
    const found = await allowed(askOf(bare), [administrator()], mailroomTable(bare), REPLACING, [
      inboxKey('payments'),
    ]);
    expect(found).toHaveLength(5);
  });
});
