import { type App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { describe, expect, test } from 'vitest';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom, MailroomBus } from '../../lib/index.ts';
import { ACCOUNT, type DeployedPart, deployedParts, REGION } from './access/deployed-parts.ts';
import { administrator, askOf, type Principal, rolesOf } from './access/permissions.ts';
import { testApp } from './synth.ts';

// Attacks of another team in the same account, with its own stack and no permission on the bus.

const here = { account: ACCOUNT, region: REGION };
const entry = lambdaEntry('example/bank/handler');

function partOf(parts: readonly DeployedPart[], stack: string, type: string, id = ''): DeployedPart {
  const found = parts.find((part) => part.stack === stack && part.type === type && part.id.includes(id));
  if (found === undefined) throw new Error(`${stack} deploys no ${type} ${id}`);
  return found;
}

/** The shared bus of the orders, in the app of its owner: with the orders, and the payments, which have a key and a consumer. */
function shop(change: (bus: MailroomBus) => void = () => undefined): App {
  const app = testApp();
  const bus = new MailroomBus(new Stack(app, 'Bus'), 'Bus', { eventBusName: 'shop' });
  new Mailroom(new Stack(app, 'Orders'), 'Mailroom', { bus, sources: ['orders'], audit: {} });
  const stack = new Stack(app, 'Payments');
  const mailroom = new Mailroom(stack, 'Mailroom', { bus, encryptionKey: new Key(stack, 'Key') });
  payments(stack, mailroom);
  change(bus);
  return app;
}

function payments(stack: Stack, mailroom: Mailroom): void {
  const props = { mailroom, name: 'payments', service: 'payments', events: [OrderPlaced], entry };
  new InboxConsumer(stack, 'Payments', props);
}

describe('a forward of a stack that owns nothing', () => {
  /** The roles that another team deploys: that of a forward to the bus of the orders. */
  const foreign = testApp();
  const own = new MailroomBus(new Stack(foreign, 'Foreign', { env: here }), 'Bus', {
    eventBusName: 'foreign',
  });
  const target = EventBus.fromEventBusName(own, 'Target', 'shop');
  const { roleName } = own.forwardTo(target, { from: 'orders', events: [OrderPlaced] });
  const [forward] = rolesOf(deployedParts(foreign)) as [Principal];

  const put = (app: App, who: Principal, ...sources: string[]) => {
    const parts = deployedParts(app);
    const { arn } = partOf(parts, 'Bus', 'AWS::Events::EventBus');
    return askOf(parts)(who, { action: 'events:PutEvents', resource: arn, sources });
  };

  test('may not publish as the service of another Mailroom, nor as one that no Mailroom publishes', async () => {
    expect(await put(shop(), forward, 'orders')).toBe('DENY');
    expect(await put(shop(), { ...administrator(), tags: forward.tags }, 'unclaimed')).toBe('DENY');
  });

  test('may, once the owner of the bus accepts it, publish that service only, whatever its policies allow', async () => {
    const accepting = shop((bus) =>
      bus.acceptFrom({ role: roleName, from: 'orders', events: [OrderPlaced] }),
    );
    expect(await put(accepting, forward, 'orders')).toBe('allow');
    expect(await put(accepting, forward, 'payments')).toBe('DENY');
    const { policies } = administrator();
    for (const tags of [forward.tags, { 'mailroom:publisher': 'shop' }])
      for (const source of ['payments', 'unclaimed'])
        expect(await put(accepting, { ...forward, policies, tags }, source)).toBe('DENY');
    expect(await put(accepting, { ...administrator('another'), tags: forward.tags }, 'orders')).toBe('DENY');
  });

  test('is limited to its service before it is admitted', () => {
    const accepting = shop((bus) =>
      bus.acceptFrom({ role: roleName, from: 'orders', events: [OrderPlaced] }),
    );
    const template = Template.fromStack(accepting.node.findChild('Bus') as Stack);
    const statements = Object.entries(template.findResources('AWS::Events::EventBusPolicy'));
    const [[, admits] = []] = statements.filter(([id]) => id.includes('Forwards'));
    const [[limits] = []] = statements.filter(([id]) => id.includes('OnlyPolicy'));
    expect(admits?.DependsOn).toEqual([limits]);
  });

  test.each(['us-isof-south-1', 'ap-southeast-1'])(
    'has a role with a name that IAM takes in %s, however long its path is',
    (region) => {
      const stack = new Stack(testApp(), 'a'.repeat(60), { env: { account: ACCOUNT, region } });
      const bus = new MailroomBus(stack, 'b'.repeat(60));
      const name = bus.forwardTo(EventBus.fromEventBusName(stack, 'Other', 'other'), {
        from: 'orders',
        events: [OrderPlaced],
      }).roleName;
      expect(name).toMatch(/^[\w-]{1,64}$/);
      expect(name.endsWith(`-${region}`)).toBe(true);
    },
  );

  test('may not publish by tags alone: every tag of the relay of the orders gives it nothing', async () => {
    const app = shop();
    const relay = rolesOf(deployedParts(app)).find(({ name }) => name === 'Orders/MailroomRelayStreamRole');
    expect(relay?.tags).toMatchObject({ 'mailroom:publisher': 'shop' });
    expect(await put(app, relay as Principal, 'orders')).toBe('allow');
    expect(await put(app, { ...administrator(), tags: relay?.tags ?? {} }, 'orders')).toBe('DENY');
  });

  test('has a dead-letter queue with the key of its bus, to which only its own rule sends', async () => {
    const app = testApp();
    const stack = new Stack(app, 'Legacy');
    const encryptionKey = new Key(stack, 'Key');
    const bus = new MailroomBus(stack, 'Bus', { eventBusName: 'legacy', encryptionKey });
    bus.forwardTo(EventBus.fromEventBusName(stack, 'Target', 'shop'), {
      from: 'orders',
      events: [OrderPlaced],
    });
    const parts = deployedParts(app);
    const queue = partOf(parts, 'Legacy', 'AWS::SQS::Queue');
    expect(queue.properties.KmsMasterKeyId).toBe(partOf(parts, 'Legacy', 'AWS::KMS::Key').arn);
    const send = (who: Principal) => askOf(parts)(who, { action: 'sqs:SendMessage', resource: queue.arn });
    const service = 'events.amazonaws.com';
    const rule = partOf(parts, 'Legacy', 'AWS::Events::Rule').arn;
    expect(await send({ name: 'its rule', arn: rule, policies: [], service })).toBe('allow');
    expect(await send({ name: 'another rule', arn: `${rule}-2`, policies: [], service })).toBe('-');
    expect(await send(administrator())).toBe('DENY');
    const key = { action: 'kms:GenerateDataKey', resource: partOf(parts, 'Legacy', 'AWS::KMS::Key').arn };
    expect(await askOf(parts)({ name: 'its rule', arn: rule, policies: [], service }, key)).toBe('allow');
  });
});

describe('a role with the tag of an audit and no policy', () => {
  const parts = deployedParts(shop());
  const ask = askOf(parts);
  const tagged: Principal = {
    name: 'a tagged role',
    arn: `arn:aws:iam::${ACCOUNT}:role/hostile`,
    policies: [],
    tags: { 'mailroom:auditor': 'shop', mailroom: 'Orders/Mailroom' },
  };
  const listed = rolesOf(parts).find(({ name }) => name === 'Orders/MailroomAuditFunctionRole') as Principal;
  const of = (type: string, id = '') => partOf(parts, 'Payments', type, id).arn;

  test.each([
    ['reads no inbox row', 'dynamodb:GetItem', of('AWS::DynamoDB::GlobalTable'), { key: 'INBOX#payments#1' }],
    ['reads no dead letter', 'sqs:ReceiveMessage', of('AWS::SQS::Queue', 'DeadLetters'), {}],
    ['hides no dead letter', 'sqs:ChangeMessageVisibility', of('AWS::SQS::Queue', 'DeadLetters'), {}],
    ['reads no undelivered event', 'sqs:ReceiveMessage', of('AWS::SQS::Queue', 'Undelivered'), {}],
    ['decrypts nothing', 'kms:Decrypt', of('AWS::KMS::Key'), { via: 'sqs' }],
  ])('%s', async (_what, action, resource, more) => {
    expect(await ask(tagged, { action, resource, ...more })).toBe('-');
    expect(await ask(listed, { action, resource, ...more })).toBe('allow');
  });

  test('is not an audit of another app, which the owner of a bus lists by its name for every Mailroom', async () => {
    const app = testApp();
    const stack = new Stack(app, 'Bus');
    const auditors = [Role.fromRoleName(stack, 'Audit', 'invoices-audit')];
    const bus = new MailroomBus(stack, 'Bus', { eventBusName: 'shop', auditors });
    new Mailroom(new Stack(app, 'Orders'), 'Mailroom', { bus });
    // The stacks of another app look the list up in Parameter Store.
    const other = new Stack(app, 'Payments');
    const imported = EventBus.fromEventBusName(other, 'Bus', 'shop');
    const mailroom = new Mailroom(other, 'Mailroom', { bus: imported, audit: {} });
    payments(other, mailroom);
    const deployed = deployedParts(app);
    const ask = (name: string, action: string, resource: string) =>
      askOf(deployed)(
        { ...tagged, arn: name.startsWith('arn:') ? name : `arn:aws:iam::${ACCOUNT}:role/${name}` },
        { action, resource, key: 'INBOX#payments#1' },
      );
    for (const name of ['Orders', 'Payments']) {
      const table = partOf(deployed, name, 'AWS::DynamoDB::GlobalTable').arn;
      expect(await ask('invoices-audit', 'dynamodb:GetItem', table)).toBe('allow');
      expect(await ask('another-audit', 'dynamodb:GetItem', table)).toBe('-');
    }
    const queue = partOf(deployed, 'Payments', 'AWS::SQS::Queue', 'PaymentsDeadLetters').arn;
    const own = rolesOf(deployed).find(({ name }) => name === 'Payments/MailroomAuditFunctionRole');
    expect(await ask('invoices-audit', 'sqs:ReceiveMessage', queue)).toBe('allow');
    expect(await ask(own?.arn ?? '', 'sqs:ReceiveMessage', queue)).toBe('allow');
    expect(await ask('another-audit', 'sqs:ReceiveMessage', queue)).toBe('-');
    const attributes = deployed.find(({ stack, id }) => stack === 'Payments' && id === 'MailroomAttributes');
    const [ofPayments, ...others] = attributes?.properties.Value.split(',').at(-1).split('|') ?? [];
    expect(ofPayments).toBe(own?.arn);
    expect(others).toEqual([`arn:aws:iam::${ACCOUNT}:role/invoices-audit`]);
    const list = deployed.find(({ name }) => name === '/mailroom-buses/shop/auditors');
    expect(list?.properties.Value).toBe(`arn:aws:iam::${ACCOUNT}:role/invoices-audit`);
  });
});

describe('a rule that another team adds to the shared bus', () => {
  const parts = deployedParts(shop());
  const ask = askOf(parts);
  const rule = (arn: string): Principal => ({
    name: 'a rule',
    arn,
    policies: [],
    service: 'events.amazonaws.com',
  });
  const send = (arn: string, queue: string) =>
    ask(rule(arn), {
      action: 'sqs:SendMessage',
      resource: partOf(parts, 'Payments', 'AWS::SQS::Queue', queue).arn,
    });

  test.each(['PaymentsQueue', 'PaymentsUndelivered'])(
    'may not send its own messages to %s',
    async (queue) => {
      const foreign = `arn:aws:events:${REGION}:${ACCOUNT}:rule/shop/hostile`;
      expect(await send(foreign, queue)).toBe('-');
      expect(await send(`${foreign}-events`, queue)).toBe('-');
      expect(await send(partOf(parts, 'Payments', 'AWS::Events::Rule', 'PaymentsRule').arn, queue)).toBe(
        'allow',
      );
    },
  );
});

describe('a queue of another team', () => {
  const app = shop((bus) => {
    bus.forwardTo(EventBus.fromEventBusName(bus, 'Target', 'other'), {
      from: 'orders',
      events: [OrderPlaced],
    });
  });
  const queues = deployedParts(app).filter(({ type }) => type === 'AWS::SQS::Queue');

  // SQS moves messages to a dead-letter queue whatever the policy of that queue is.
  test.each(['PaymentsQueue', 'PaymentsUndelivered', 'RelayFailures', 'ToTarget', 'PaymentsDeadLetters'])(
    'may not have %s for its dead-letter queue, and fill it with its own messages',
    (id) => {
      const found = queues.filter((queue) => queue.id.includes(id));
      expect(found.length).toBeGreaterThan(0);
      const own = queues.find((queue) => queue.id === 'PaymentsQueue');
      for (const { properties } of found)
        expect(properties.RedriveAllowPolicy).toEqual(
          id === 'PaymentsDeadLetters'
            ? { redrivePermission: 'byQueue', sourceQueueArns: [own?.arn] }
            : { redrivePermission: 'denyAll' },
        );
    },
  );

  test('finds no other queue to fill', () => {
    expect(queues.filter(({ properties }) => properties.RedriveAllowPolicy === undefined)).toEqual([]);
  });
});

test('an audit that the owner lists may be a role of a stack whose Mailroom joins the bus', async () => {
  const app = testApp();
  const stack = new Stack(app, 'Orders');
  const audit = new Role(stack, 'OwnAudit', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
  const bus = new MailroomBus(new Stack(app, 'Bus'), 'Bus', { eventBusName: 'shop', auditors: [audit] });
  new Mailroom(stack, 'Mailroom', { bus });
  const parts = deployedParts(app);
  const who = rolesOf(parts).find(({ name }) => name === 'Orders/OwnAudit') as Principal;
  const resource = partOf(parts, 'Orders', 'AWS::DynamoDB::GlobalTable').arn;
  const question = { action: 'dynamodb:GetItem', resource, key: 'INBOX#payments#1' };
  expect(await askOf(parts)(who, question)).toBe('allow');
});

describe('a change of the list of audits by the owner of the bus', () => {
  /** An app whose key and consumer are in separate stacks, on a bus of another app. */
  const app = testApp();
  const key = new Key(new Stack(app, 'Keys'), 'Key');
  const stack = new Stack(app, 'Mailroom');
  const bus = EventBus.fromEventBusName(stack, 'Bus', 'shop');
  const mailroom = new Mailroom(stack, 'Mailroom', { bus, audit: {}, encryptionKey: key });
  payments(new Stack(app, 'Payments'), mailroom);

  test.each(['Keys', 'Mailroom', 'Payments'])(
    'reaches the stack %s by itself, so it cannot block the deployment of another one',
    (name) => {
      const template = Template.fromStack(app.node.findChild(name) as Stack);
      const looked = Object.values(template.findParameters('*')).map(({ Default }) => Default);
      expect(looked).toContain('/mailroom-buses/shop/auditors');
      // CloudFormation refuses to change an export that another stack imports.
      expect(JSON.stringify(template.toJSON().Outputs ?? {})).not.toContain('auditors');
    },
  );
});
