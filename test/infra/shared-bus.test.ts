import { App, Duration, NestedStack, Stack, Token } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { type IRole, Role } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { OrderPlaced, PaymentCaptured } from '../../lambdas/example/events.ts';
import { externalEvent } from '../../lambdas/runtime/events/external-event.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom, MailroomBus, ServiceFunction } from '../../lib/index.ts';
import { ACCOUNT, deployedParts, REGION } from './access/deployed-parts.ts';
import { administrator, askOf, type Principal, rolesOf } from './access/permissions.ts';
import { resources, testApp } from './synth.ts';

const entry = lambdaEntry('example/bank/handler');
/** The longest policy of a bus, characters (EventBridge quotas). */
const POLICY_MAX = 10_240;

const here = { account: '111122223333', region: 'eu-west-1' };
const there = { account: '111122223333', region: 'us-east-1' };

const Paid = externalEvent({ source: 'psp', type: 'Paid', id: ['id'], schema: z.looseObject({}) });

function producer(stack: Stack, service: string, id = 'Api'): ServiceFunction {
  return new ServiceFunction(stack, id, { entry, service });
}

function consumerOf(mailroom: Mailroom): void {
  const props = { mailroom, name: 'payments', service: 'payments', events: [OrderPlaced], entry };
  new InboxConsumer(Stack.of(mailroom), 'Payments', props);
}

/** Two Mailrooms on one bus, each in its own stack; that of the payments has a producer that publishes at once. */
function twoMailrooms() {
  const app = testApp();
  const bus = new MailroomBus(new Stack(app, 'Bus'), 'Bus', { eventBusName: 'shop' });
  bus.acceptFrom({ role: 'Forward', from: 'orders', events: [OrderPlaced] });
  const orders = new Mailroom(new Stack(app, 'Orders'), 'Mailroom', { bus });
  orders.addProducer(producer(Stack.of(orders), 'orders'), { service: 'orders', publishes: [OrderPlaced] });
  const payments = new Mailroom(new Stack(app, 'Payments'), 'Mailroom', { bus });
  const atOnce = producer(Stack.of(payments), 'payments');
  payments.addProducer(atOnce, { service: 'payments', publishes: [PaymentCaptured], publishAtOnce: {} });
  return { app, bus, orders, payments };
}

describe('two Mailrooms on one bus', () => {
  const { app } = twoMailrooms();
  const parts = deployedParts(app);
  const ask = askOf(parts);
  const resource = parts.find(({ type }) => type === 'AWS::Events::EventBus')?.arn ?? '';
  const role = (name: string) => rolesOf(parts).find((one) => one.name === name) as Principal;
  const put = (who: Principal, ...sources: string[]) =>
    ask(who, { action: 'events:PutEvents', resource, sources });

  test('let each relay publish the services of its own Mailroom only', async () => {
    for (const path of ['Stream', 'Sweep']) {
      expect(await put(role(`Orders/MailroomRelay${path}Role`), 'orders')).toBe('allow');
      expect(await put(role(`Orders/MailroomRelay${path}Role`), 'payments')).toBe('DENY');
      expect(await put(role(`Orders/MailroomRelay${path}Role`), 'orders', 'payments')).toBe('DENY');
      expect(await put(role(`Payments/MailroomRelay${path}Role`), 'payments')).toBe('allow');
    }
  });

  test('let a producer publish at once the events of its own service only', async () => {
    expect(await put(role('Payments/ApiRole'), 'payments')).toBe('allow');
    expect(await put(role('Payments/ApiRole'), 'orders')).toBe('DENY');
    expect(await put(role('Orders/ApiRole'), 'orders')).toBe('DENY');
  });

  test('let an accepted forward of the same service from another bus through', async () => {
    const forward: Principal = {
      ...administrator('Forward'),
      tags: { 'mailroom:publisher': 'shop', 'mailroom:forward': 'shop' },
    };
    expect(await put(forward, 'orders')).toBe('allow');
    expect(await put(forward, 'orders', 'payments')).toBe('DENY');
    const elsewhere = { ...forward, tags: { ...forward.tags, 'mailroom:forward': 'another' } };
    expect(await put(elsewhere, 'orders')).toBe('DENY');
  });

  test('add a statement each of which the policy of a bus holds at least 14', () => {
    const policies = parts.filter(({ type }) => type === 'AWS::Events::EventBusPolicy');
    const guards = policies.filter(({ stack }) => stack !== 'Bus');
    expect(guards).toHaveLength(2);
    const own = parts.find(({ type }) => type === 'AWS::Events::EventBus')?.properties.Policy;
    const size = (policy: object) => JSON.stringify(policy).length;
    const [longest = 0] = guards
      .map(({ properties }) => size(properties.Statement))
      .toSorted((a, b) => b - a);
    const accepted = policies.filter(({ stack }) => stack === 'Bus');
    const ofBus = size(own) + accepted.reduce((sum, { properties }) => sum + size(properties.Statement), 0);
    expect(ofBus + 14 * longest).toBeLessThan(POLICY_MAX);
  });

  test('deny their sources to an administrator, also with the tag of the bus', async () => {
    const tagged: Principal = { ...administrator(), tags: { 'mailroom:publisher': 'shop' } };
    expect(await put(administrator(), 'unclaimed')).toBe('DENY');
    expect(await put(tagged, 'orders')).toBe('DENY');
    expect(await put(tagged, 'payments')).toBe('DENY');
  });

  test('claim each service under the name of the bus, before the table', () => {
    const template = Template.fromStack(app.node.findChild('Orders') as Stack);
    const [id, claim] =
      Object.entries(resources(template, 'AWS::SSM::Parameter')).find(([id]) =>
        id.startsWith('MailroomClaimorders'),
      ) ?? [];
    expect(JSON.stringify(claim?.Properties.Name)).toMatch(/\/mailroom-buses\/.*\/services\/orders/);
    expect(claim?.Properties.Description).toBe(
      'The service orders on this bus belongs to Orders/Mailroom in the stack Orders. It has one owner.',
    );
    expect(JSON.parse(claim?.Properties.Value)).toEqual({
      stack: 'Orders',
      stackPath: 'Orders',
      owner: 'Orders/Mailroom',
    });
    const [table] = Object.values(resources(template, 'AWS::DynamoDB::GlobalTable'));
    expect(table?.DependsOn).toContain(id);
  });
});

describe('the scheduled audit of a Mailroom on a shared bus', () => {
  const app = testApp();
  const bus = new MailroomBus(new Stack(app, 'Bus'), 'Bus', { eventBusName: 'shop' });
  new Mailroom(new Stack(app, 'Orders'), 'Mailroom', { bus, audit: {} });
  const other = new Stack(app, 'Payments');
  consumerOf(new Mailroom(other, 'Mailroom', { bus, encryptionKey: new Key(other, 'Key') }));
  consumerOf(new Mailroom(new Stack(app, 'Alone'), 'Mailroom'));
  const parts = deployedParts(app);
  const ask = askOf(parts);
  const auditor = rolesOf(parts).find(({ name }) => name === 'Orders/MailroomAuditFunctionRole') as Principal;
  const sweep = rolesOf(parts).find(({ name }) => name === 'Orders/MailroomRelaySweepRole') as Principal;
  const arn = (stack: string, type: string, id = '') =>
    parts.find((part) => part.stack === stack && part.type === type && part.id.includes(id))?.arn ?? '';
  const rows = (who: Principal, stack: string, action: string, key?: string) =>
    ask(who, { action: `dynamodb:${action}`, resource: arn(stack, 'AWS::DynamoDB::GlobalTable'), key });

  test('reads single inbox rows of the other Mailrooms on the bus, and nothing else of their tables', async () => {
    expect(await rows(auditor, 'Payments', 'GetItem', 'INBOX#payments#1')).toBe('allow');
    expect(await rows(auditor, 'Payments', 'GetItem', 'OUTBOX#1')).toBe('-');
    expect(await rows(auditor, 'Payments', 'GetItem')).toBe('-');
    expect(await rows(auditor, 'Payments', 'Query', 'INBOX#payments#1')).toBe('-');
    expect(await rows(auditor, 'Payments', 'UpdateItem', 'INBOX#payments#1')).toBe('-');
    expect(await rows(sweep, 'Payments', 'GetItem', 'INBOX#payments#1')).toBe('-');
    expect(await rows(auditor, 'Alone', 'GetItem', 'INBOX#payments#1')).toBe('-');
  });

  test('reads the key of another Mailroom only through the table and the queues', async () => {
    const resource = arn('Payments', 'AWS::KMS::Key');
    const decrypt = (who: Principal, via?: string) => ask(who, { action: 'kms:Decrypt', resource, via });
    expect(await decrypt(auditor, 'dynamodb')).toBe('allow');
    expect(await decrypt(auditor, 'sqs')).toBe('allow');
    expect(await decrypt(auditor)).toBe('-');
    expect(await decrypt(sweep, 'dynamodb')).toBe('-');
  });

  test('looks at the queues of the other Mailrooms, and receives only from their dead-letter queues', async () => {
    const queue = (who: Principal, stack: string, action: string, id: string) =>
      ask(who, { action: `sqs:${action}`, resource: arn(stack, 'AWS::SQS::Queue', id) });
    expect(await queue(auditor, 'Payments', 'GetQueueAttributes', 'PaymentsQueue')).toBe('allow');
    expect(await queue(auditor, 'Payments', 'ReceiveMessage', 'PaymentsQueue')).toBe('-');
    expect(await queue(auditor, 'Payments', 'ReceiveMessage', 'PaymentsDeadLetters')).toBe('allow');
    expect(await queue(auditor, 'Payments', 'DeleteMessage', 'PaymentsDeadLetters')).toBe('-');
    expect(await queue(sweep, 'Payments', 'GetQueueAttributes', 'PaymentsQueue')).toBe('-');
    expect(await queue(auditor, 'Alone', 'GetQueueAttributes', 'PaymentsQueue')).toBe('-');
  });

  test('reads the claims of the bus and the entries of every Mailroom', async () => {
    const parameters = (path: string) =>
      ask(auditor, {
        action: 'ssm:GetParametersByPath',
        resource: `arn:aws:ssm:${REGION}:${ACCOUNT}:parameter${path}`,
      });
    expect(await parameters('/mailroom-buses/shop')).toBe('allow');
    expect(await parameters('/mailroom-buses/another')).toBe('-');
    expect(await parameters('/mailroom/another-table')).toBe('allow');
    expect(await parameters('/secrets')).toBe('-');
  });
});

describe('a Mailroom refuses', () => {
  const stack = () => new Stack(testApp(), 'Test', { env: here });

  test('a service that another Mailroom of the app publishes on the bus, and names it', () => {
    const { orders, payments } = twoMailrooms();
    const second = producer(Stack.of(payments), 'orders', 'Second');
    const message = `It publishes the service "orders", but ${orders.node.path} already publishes it on the same bus`;
    expect(() => payments.addProducer(second, { service: 'orders', publishes: [OrderPlaced] })).toThrow(
      message,
    );
    const third = new Stack(payments.node.root, 'Third');
    const imported = EventBus.fromEventBusName(third, 'Bus', 'shop');
    expect(() => new Mailroom(third, 'Mailroom', { bus: imported, sources: ['orders'] })).toThrow(message);
  });

  test('a second Mailroom of one role that publishes at once', () => {
    const { orders, payments } = twoMailrooms();
    const stack = Stack.of(orders);
    const { role } = producer(stack, 'orders', 'First');
    const code = Code.fromInline('exports.handler = async () => {}');
    const props = { runtime: Runtime.NODEJS_LATEST, handler: 'index.handler', code, role: role as IRole };
    const more = (service: string) => new LambdaFunction(stack, service, props);
    orders.addProducer(more('orders'), {
      service: 'orders',
      publishes: [OrderPlaced],
      publishAtOnce: {},
    });
    expect(() =>
      payments.addProducer(more('payments'), {
        service: 'payments',
        publishes: [PaymentCaptured],
        publishAtOnce: {},
      }),
    ).toThrow(`publishAtOnce is already used for ${orders.node.path}: a role can publish at once for one`);
  });

  test('a publisher on a shared bus with a role of another app, which would change its own policy', () => {
    const at = stack();
    const role = Role.fromRoleName(at, 'Imported', 'publisher');
    const grant = (shared: boolean) => () =>
      new MailroomBus(at, `Bus${shared}`, { shared }).grantPublish(role, () => ['tickets']);
    expect(grant(true)).toThrow('It has no role that this app creates');
    expect(grant(false)).not.toThrow();
  });

  test('the bus that another one made for itself, and an archive that belongs to the bus', () => {
    const at = stack();
    const { bus } = new Mailroom(at, 'First');
    expect(() => new Mailroom(at, 'Second', { bus, archive: Duration.days(7) })).toThrow(
      /- bus is Test\/First\/Bus, which the Mailroom Test\/First made for itself.*\n- archive and bus are both given/,
    );
  });

  test('a bus of another region, and the default bus', () => {
    const at = stack();
    const abroad = EventBus.fromEventBusArn(
      at,
      'Far',
      'arn:aws:events:us-east-1:111122223333:event-bus/shop',
    );
    expect(() => new Mailroom(at, 'Mailroom', { bus: abroad })).toThrow(
      'bus is in 111122223333, us-east-1, but must be in the account and the region of its Mailrooms: here 111122223333, eu-west-1.',
    );
    const common = EventBus.fromEventBusName(at, 'Default', 'default');
    expect(() => new Mailroom(at, 'Second', { bus: common })).toThrow('bus is the default bus');
  });

  test('a consumer and a producer in another region', () => {
    const app = testApp();
    const mailroom = new Mailroom(new Stack(app, 'Here', { env: here }), 'Mailroom');
    const far = new Stack(app, 'There', { env: there });
    const message =
      'mailroom is Here/Mailroom in 111122223333, eu-west-1, but this is in 111122223333, us-east-1.';
    expect(
      () =>
        new InboxConsumer(far, 'Payments', {
          mailroom,
          name: 'payments',
          service: 'payments',
          events: [OrderPlaced],
          entry,
        }),
    ).toThrow(message);
    expect(() =>
      mailroom.addProducer(producer(far, 'orders'), { service: 'orders', publishes: [OrderPlaced] }),
    ).toThrow(message);
  });

  test.each(['shop-*', 'shop-?', 'orders,payments'])('a list of audits with the role %j', (name) => {
    const own = stack();
    const auditors = [Role.fromRoleName(own, 'Audit', name)];
    expect(() => new MailroomBus(own, 'Bus', { auditors })).toThrow(
      `auditors contains the role "${name}", but each must be one role`,
    );
  });

  test.each(['', 'a/b', 'default', 'x'.repeat(257)])('a bus named %j', (eventBusName) => {
    expect(() => new MailroomBus(stack(), 'Bus', { eventBusName })).toThrow(/^The bus Test\/Bus has invalid/);
  });
});

describe('a Mailroom that moves to another bus', () => {
  /** The rules of a consumer, and of a forward, by their buses. */
  function rulesOn(eventBusName?: string) {
    const stack = new Stack(testApp(), 'Test');
    const bus = eventBusName === undefined ? undefined : new MailroomBus(stack, 'Bus', { eventBusName });
    const mailroom = new Mailroom(stack, 'Mailroom', { ...(bus && { bus }) });
    new InboxConsumer(stack, 'Payments', {
      ...{ mailroom, name: 'payments', service: 'payments', events: [OrderPlaced, Paid], entry },
      ...(eventBusName && { externalBus: EventBus.fromEventBusName(stack, 'Paid', `${eventBusName}-paid`) }),
    });
    bus?.forwardTo(EventBus.fromEventBusName(stack, 'Other', 'other'), {
      from: 'orders',
      events: [OrderPlaced],
    });
    const rules = Object.entries(resources(Template.fromStack(stack), 'AWS::Events::Rule'));
    return rules
      .filter(([id]) => /^Payments|^Bus/.test(id))
      .map(([id, { Properties }]) => [id, JSON.stringify(Properties.Name)] as const);
  }

  test('has rules with other names there: CloudFormation replaces no rule whose fixed name stays', () => {
    const shop = rulesOn('shop');
    const names = [...shop, ...rulesOn('store'), ...rulesOn()].map(([, name]) => name);
    expect(shop).toHaveLength(3);
    expect(new Set(names).size).toBe(names.length);
    expect(rulesOn('shop')).toEqual(shop);
  });
});

describe('an imported Mailroom', () => {
  /** A stack of another app, attached to a Mailroom by its table's name. */
  function attached() {
    const app = testApp();
    const stack = new Stack(app, 'Invoices');
    const mailroom = Mailroom.fromTableName(stack, 'Mailroom', 'orders-table');
    new InboxConsumer(stack, 'Invoices', {
      mailroom,
      name: 'invoices',
      service: 'invoices',
      events: [OrderPlaced],
      publishes: [{ source: 'invoices', type: 'InvoiceIssued' }],
      entry,
      domainKeys: ['INVOICE#*'],
    });
    return { app, stack, mailroom, template: Template.fromStack(stack) };
  }

  test('is looked up in Parameter Store: its attributes, and the service that a consumer publishes', () => {
    const parameters = Object.values(attached().template.findParameters('*')).map(({ Type, Default }) => [
      Type,
      Default,
    ]);
    expect(parameters).toContainEqual([
      'AWS::SSM::Parameter::Value<List<String>>',
      '/mailroom/orders-table/attributes/v1',
    ]);
    expect(parameters).toContainEqual([
      'AWS::SSM::Parameter::Value<String>',
      '/mailroom/orders-table/services/invoices',
    ]);
  });

  test('gives a consumer the same environment and grants as a Mailroom of its own app', () => {
    const { template } = attached();
    const [handler] = Object.values(resources(template, 'AWS::Lambda::Function'));
    const select = (index: number) => ({
      'Fn::Select': [index, { Ref: expect.stringMatching(/attributesv1/) }],
    });
    expect(handler?.Properties.Environment.Variables).toMatchObject({
      MAILROOM_TABLE: 'orders-table',
      MAILROOM_SHARDS: select(1),
      MAILROOM_BORN_LEASE_MS: select(2),
    });
    const [rule] = Object.values(resources(template, 'AWS::Events::Rule'));
    expect(rule?.Properties.EventBusName).toEqual(select(0));
    const policies = Object.values(resources(template, 'AWS::SQS::QueuePolicy')).map(({ Properties }) =>
      JSON.stringify(Properties.PolicyDocument),
    );
    const watched = policies.filter((text) => text.includes('TheSweepLooksAtDeadLetters'));
    expect(watched).toHaveLength(2);
    const audits = { 'Fn::Split': ['|', select(5)] };
    const [look] = Object.values(resources(template, 'AWS::SQS::QueuePolicy')).flatMap(({ Properties }) =>
      Properties.PolicyDocument.Statement.filter(({ Sid }: { Sid: string }) => Sid === 'AuditsOnTheBusLook'),
    );
    expect(look.Condition.ArnEquals).toEqual({ 'aws:PrincipalArn': audits });
    const [policy] = Object.values(resources(template, 'AWS::IAM::ManagedPolicy'));
    const keys = policy?.Properties.PolicyDocument.Statement.flatMap(
      // biome-ignore lint/suspicious/noExplicitAny: a template is JSON of any shape
      ({ Condition }: any) => Condition?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'] ?? [],
    );
    expect(keys).toEqual(expect.arrayContaining(['INBOX#invoices#*', 'OUTBOX#*', 'INVOICE#*']));
  });

  test('belongs to one stack and its nested ones: another would import values that could then never change', () => {
    const { app, stack, mailroom } = attached();
    const consumer = { mailroom, name: 'payments', service: 'payments', events: [OrderPlaced], entry };
    const message = 'imported in another stack of this app';
    const other = new Stack(app, 'Other');
    expect(() => new InboxConsumer(other, 'Payments', consumer)).toThrow(message);
    expect(() =>
      mailroom.addProducer(producer(other, 'orders'), { service: 'orders', publishes: [OrderPlaced] }),
    ).toThrow(message);
    expect(() => new InboxConsumer(new NestedStack(stack, 'Nested'), 'Payments', consumer)).not.toThrow();
  });

  test('refuses a token, an ARN, and a producer that publishes at once', () => {
    const stack = new Stack(new App(), 'Test');
    const token = Token.asString({ Ref: 'Table' });
    expect(() => Mailroom.fromTableName(stack, 'A', token)).toThrow('tableName is a token');
    const arn = 'arn:aws:dynamodb:eu-west-1:111122223333:table/orders';
    expect(() => Mailroom.fromTableName(stack, 'B', arn)).toThrow(
      `tableName is "${arn}", but must be 3 to 255`,
    );
    const { mailroom, stack: own } = attached();
    const props = { service: 'invoices', publishes: [{ source: 'invoices', type: 'A' }], publishAtOnce: {} };
    expect(() => mailroom.addProducer(producer(own, 'invoices'), props)).toThrow(
      'publishAtOnce needs rights of the relay, which belongs to the app of the Mailroom.',
    );
  });
});

describe('a forward', () => {
  const events = [OrderPlaced];
  const buses = (...names: string[]) => {
    const stack = new Stack(testApp(), 'Test', { env: here });
    return names.map((eventBusName) => new MailroomBus(stack, eventBusName, { eventBusName })) as [
      MailroomBus,
      MailroomBus,
      MailroomBus,
    ];
  };

  test('has a rule for the listed types, a role that may put on the target only, and a dead-letter queue', async () => {
    const app = testApp();
    const stack = new Stack(app, 'Test', { env: here });
    const from = new MailroomBus(stack, 'From');
    const arn = 'arn:aws:events:us-east-1:444455556666:event-bus/shop';
    from.forwardTo(EventBus.fromEventBusArn(stack, 'Far', arn), { from: 'orders', events });
    const template = Template.fromStack(stack);
    const [rule] = Object.values(resources(template, 'AWS::Events::Rule'));
    expect(rule?.Properties.EventPattern).toEqual({ source: ['orders'], 'detail-type': ['OrderPlaced'] });
    expect(rule?.Properties.Targets).toEqual([
      {
        Arn: arn,
        Id: expect.anything(),
        RoleArn: expect.anything(),
        DeadLetterConfig: { Arn: expect.anything() },
      },
    ]);
    const [role] = Object.values(resources(template, 'AWS::IAM::Role'));
    expect(role?.Properties.RoleName).toMatch(/^Test-From-ToFar-orders-[0-9A-F]{8}-eu-west-1$/);
    expect(role?.Properties.Tags).toEqual([
      { Key: 'mailroom:forward', Value: 'shop' },
      { Key: 'mailroom:publisher', Value: 'shop' },
    ]);
    template.hasResourceProperties('AWS::IAM::Policy', {
      PolicyDocument: {
        Statement: [
          {
            Action: 'events:PutEvents',
            Effect: 'Allow',
            Resource: arn,
            Condition: {
              'ForAllValues:StringEquals': { 'events:source': ['orders'] },
              Null: { 'events:source': 'false' },
            },
          },
        ],
      },
    });
  });

  test('is refused if it would loop, form a chain, or carry events of another service', () => {
    const [a, b, c] = buses('a', 'b', 'c');
    const orders = { from: 'orders', events };
    a.forwardTo(b, orders);
    expect(() => b.forwardTo(a, orders)).toThrow('It forms a loop with Test/a/Tob-orders');
    expect(() => b.forwardTo(c, orders)).toThrow('It forms a chain with Test/a/Tob-orders');
    expect(() => c.forwardTo(a, orders)).toThrow('It forms a chain with Test/a/Tob-orders');
    expect(() => a.forwardTo(a, orders)).toThrow('target is the bus itself');
    expect(() => a.forwardTo(b, orders)).toThrow('It already forwards events of "orders" to Test/b.');
    expect(() => a.forwardTo(c, { from: 'payments', events })).toThrow(
      'events contains OrderPlaced of "orders", but from is "payments"',
    );
    b.forwardTo(c, { from: 'payments', events: [PaymentCaptured] });
  });

  test('is found in a loop with an imported bus that has the same name, account and region', () => {
    const [a, b] = buses('a', 'b');
    const imported = EventBus.fromEventBusArn(
      a,
      'Imported',
      'arn:aws:events:eu-west-1:111122223333:event-bus/b',
    );
    a.forwardTo(imported, { from: 'orders', events });
    expect(() => b.forwardTo(a, { from: 'orders', events })).toThrow('It forms a loop');
  });

  test('is accepted from another account for the listed types of one service', () => {
    const stack = new Stack(testApp(), 'Test');
    const bus = new MailroomBus(stack, 'Bus', { eventBusName: 'shop' });
    const accept = { account: '444455556666', role: 'forward', from: 'orders', events };
    bus.acceptFrom(accept);
    expect(() => bus.acceptFrom(accept)).toThrow('It already accepts events from the role forward.');
    const template = Template.fromStack(stack);
    const [deployed] = Object.values(resources(template, 'AWS::Events::EventBus'));
    const [deny, ...others] = deployed?.Properties.Policy.Statement ?? [];
    expect(others).toEqual([]);
    expect(deny.Condition.StringNotEquals).toEqual({ 'aws:PrincipalTag/mailroom:publisher': 'shop' });
    const added = Object.values(resources(template, 'AWS::Events::EventBusPolicy')).map(
      ({ Properties }) => Properties.Statement,
    );
    expect(added.map(({ Effect }) => Effect)).toEqual(['Deny', 'Deny', 'Allow']);
    expect(added[2]).toMatchObject({
      Principal: { AWS: expect.anything() },
      Condition: {
        'ForAllValues:StringEquals': { 'events:source': ['orders'] },
        StringEquals: { 'events:detail-type': ['OrderPlaced'] },
        ArnEquals: { 'aws:PrincipalArn': expect.anything() },
      },
    });
    expect(JSON.stringify(added[2])).toContain('::444455556666:role/forward');
    expect(() => bus.acceptFrom({ account: '4444', role: 'a/b', from: 'orders', events: [] })).toThrow(
      /account is "4444", but must be the 12 digits.*\n- role is "a\/b", but must be the name.*\n- events is empty/,
    );
  });

  test('to a bus of the app that does not accept each of its types is refused at synth, with the remedy', () => {
    const [a, b] = buses('a', 'b');
    const forward = a.forwardTo(b, { from: 'orders', events, roleName: 'forwards-orders' });
    const synth = () => (a.node.root as App).synth();
    const remedy = "Call acceptFrom({ role: 'forwards-orders', from: 'orders', events }) of that bus.";
    expect(forward.roleName).toBe('forwards-orders');
    expect(synth).toThrow(`forwards OrderPlaced of "orders" to Test/b, which does not accept it`);
    expect(synth).toThrow(remedy);
    b.acceptFrom({ role: 'forwards-orders', from: 'orders', events });
    expect(synth).not.toThrow();
  });
});
