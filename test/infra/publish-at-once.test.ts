import { type App, Duration, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Role } from 'aws-cdk-lib/aws-iam';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { describe, expect, test } from 'vitest';
import { OrderPlaced, PaymentCaptured } from '../../lambdas/example/events.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { createAtOncePublisher } from '../../lambdas/runtime/store/dynamo/publish-at-once.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { Mailroom, type PublishAtOnceOptions, ServiceFunction } from '../../lib/index.ts';
import { consumerConfig, rig } from '../support/runtime-rig.ts';
import { deployedParts } from './access/deployed-parts.ts';
import { administrator, askOf, type Principal, rolesOf } from './access/permissions.ts';
import { recordCalls } from './access/recorded-calls.ts';
import { mailroomTable } from './access/role-table.ts';
import { testApp } from './synth.ts';

const OUTBOX = 'OUTBOX#2026-11-21T01:09#03';

/** A Mailroom, and two producers in stacks that are deployed after it: only that of `orders` publishes at once. */
function setUp(publishAtOnce?: PublishAtOnceOptions) {
  const app = testApp();
  const mailroom = new Mailroom(new Stack(app, 'Mailroom'), 'Mailroom');
  const producer = (id: string) =>
    new ServiceFunction(new Stack(app, id), 'Api', {
      entry: lambdaEntry('example/orders/api.handler'),
      service: id.toLowerCase(),
    });
  const orders = producer('Orders');
  mailroom.addProducer(orders, { service: 'orders', publishes: [OrderPlaced], publishAtOnce });
  mailroom.addProducer(producer('Payments'), { service: 'payments', publishes: [PaymentCaptured] });
  const parts = deployedParts(app);
  const ask = askOf(parts);
  const role = (name: string) => rolesOf(parts).find((one) => one.name === name) as Principal;
  const bus = parts.find(({ type }) => type === 'AWS::Events::EventBus');
  const put = (who: Principal, ...sources: string[]) =>
    ask(who, { action: 'events:PutEvents', resource: bus?.arn ?? '', sources });
  const row = (who: Principal, action: string, key: string) =>
    ask(who, { action: `dynamodb:${action}`, resource: mailroomTable(parts).arn, key });
  return {
    app,
    mailroom,
    orders,
    bus,
    put,
    row,
    ofOrders: role('Orders/ApiRole'),
    ofPayments: role('Payments/ApiRole'),
    relay: role('Mailroom/MailroomRelayStreamRole'),
  };
}

function environmentOf(app: App): Record<string, unknown> {
  const functions = Template.fromStack(app.node.findChild('Orders') as Stack).findResources(
    'AWS::Lambda::Function',
  );
  return Object.values(functions)[0]?.Properties.Environment.Variables;
}

describe('a producer that publishes at once', () => {
  test('may put events of its own service on the bus, and no others', async () => {
    const { put, ofOrders } = setUp({});
    expect(await put(ofOrders, 'orders')).toBe('allow');
    expect(await put(ofOrders, 'payments')).not.toBe('allow');
    expect(await put(ofOrders, 'orders', 'payments')).not.toBe('allow');
    expect(await put(ofOrders)).not.toBe('allow');
  });

  test('opens the bus for no other role, not even for an administrator', async () => {
    const { put, ofPayments } = setUp({});
    expect(await put(ofPayments, 'payments')).toBe('DENY');
    expect(await put(administrator(), 'orders')).toBe('DENY');
  });

  test('may mark and update outbox rows, but not read or delete them, nor touch the pointers of DEAD ones', async () => {
    const { row, ofOrders, ofPayments } = setUp({});
    expect(await row(ofOrders, 'PartiQLUpdate', OUTBOX)).toBe('allow');
    expect(await row(ofPayments, 'PartiQLUpdate', OUTBOX)).toBe('-');
    for (const action of ['GetItem', 'Query', 'DeleteItem', 'PartiQLSelect', 'PartiQLDelete'])
      expect(await row(ofOrders, action, OUTBOX)).toBe('-');
    expect(await row(ofOrders, 'PartiQLUpdate', 'DEAD#03')).toBe('-');
    expect(await row(ofOrders, 'PartiQLUpdate', 'INBOX#payments#1')).toBe('-');
  });

  test('lets the stream relay, and no other role, read single outbox rows', async () => {
    const { row, relay, ofPayments } = setUp({});
    expect(await row(relay, 'GetItem', OUTBOX)).toBe('allow');
    expect(await row(ofPayments, 'GetItem', OUTBOX)).toBe('-');
    expect(await row(relay, 'GetItem', 'INBOX#payments#1')).toBe('-');
    expect(await row(setUp().relay, 'GetItem', OUTBOX)).toBe('-');
  });

  test('makes only calls that its role allows', async () => {
    const { row, ofOrders } = setUp({});
    const { memory, clock, happened, bus } = rig();
    const recorded = recordCalls(memory);
    const config = { busName: 'bus', timeoutMs: 1_000, publishedRetentionDays: 7 };
    const publishAtOnce = createAtOncePublisher({ config, bus });
    const outbox = createOutbox({ config: consumerConfig, table: recorded.table, clock, publishAtOnce });
    await outbox.commit({ events: [happened(1)] });
    const calls = recorded
      .calls()
      .map(({ action, key }) => ({ action: action.replace('dynamodb:', ''), key }));
    expect(calls.map(({ action }) => action)).toEqual(['PutItem', 'PartiQLUpdate']);
    for (const { action, key = '' } of calls) expect(await row(ofOrders, action, key)).toBe('allow');
  });

  test('its environment names the bus, the turn and the retention of rows that it marks', () => {
    const { app, mailroom } = setUp({ timeout: Duration.millis(500) });
    expect(environmentOf(app)).toMatchObject({
      MAILROOM_BUS: expect.anything(),
      MAILROOM_AT_ONCE_TIMEOUT_MS: '500',
      MAILROOM_PUBLISHED_RETENTION_DAYS: String(mailroom.relay.publishedRetention.toDays()),
    });
  });

  test('its turn is one second by default', () => {
    expect(environmentOf(setUp({}).app)).toMatchObject({ MAILROOM_AT_ONCE_TIMEOUT_MS: '1000' });
  });

  test.each([Duration.millis(99), Duration.millis(5_001)])('cannot have a turn of %s', (timeout) => {
    expect(() => setUp({ timeout })).toThrow(
      /publishAtOnce\.timeout is .*, but must be from 100 millis.* to 5 sec/,
    );
  });
});

describe('without one', () => {
  test('the bus accepts its relay and named publishers only, whatever tags a role has', async () => {
    const { bus, put, ofOrders } = setUp();
    expect(JSON.stringify(bus?.properties)).not.toContain('PrincipalTag');
    expect(await put(ofOrders, 'orders')).toBe('DENY');
  });

  test('a producer gets no settings for it', () => {
    expect(environmentOf(setUp().app)).not.toHaveProperty('MAILROOM_AT_ONCE_TIMEOUT_MS');
  });
});

describe('publishing at once is refused at synth', () => {
  function adding(change: (app: App, mailroom: Mailroom) => void) {
    const { app, mailroom } = setUp();
    return () => change(app, mailroom);
  }
  const props = { service: 'orders', publishes: [OrderPlaced], publishAtOnce: {} };

  test('publishing at once is refused for a function with an imported role, which the bus could not recognize', () => {
    expect(
      adding((app, mailroom) => {
        const stack = new Stack(app, 'Imported');
        const role = Role.fromRoleArn(stack, 'Role', 'arn:aws:iam::111122223333:role/api');
        const api = new LambdaFunction(stack, 'Api', {
          runtime: Runtime.NODEJS_22_X,
          handler: 'index.handler',
          code: Code.fromInline('exports.handler = () => {}'),
          role,
        });
        mailroom.addProducer(api, props);
      }),
    ).toThrow(/publishAtOnce needs a role that this app creates/);
  });

  test('publishing at once is refused on a second bus, because a role has one tag', () => {
    const stack = new Stack(testApp(), 'Both');
    const api = new ServiceFunction(stack, 'Api', {
      entry: lambdaEntry('example/orders/api.handler'),
      service: 'orders',
    });
    new Mailroom(stack, 'First').addProducer(api, props);
    const second = new Mailroom(stack, 'Second');
    expect(() => second.addProducer(api, props)).toThrow(/already used for/);
  });

  test('publishing at once is refused with a turn that leaves the relay too little of its claim lease', () => {
    const relay = { claimLease: Duration.millis(12_500) };
    expect(
      adding((app) => {
        const stack = new Stack(app, 'Short');
        const api = new ServiceFunction(stack, 'Api', {
          entry: lambdaEntry('example/orders/api.handler'),
          service: 'orders',
        });
        const publishAtOnce = { timeout: Duration.seconds(3) };
        new Mailroom(stack, 'Mailroom', { relay }).addProducer(api, { ...props, publishAtOnce });
      }),
    ).toThrow(/publishAtOnce.timeout.*claimLease/s);
  });
});
