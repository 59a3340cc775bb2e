import { App, Stack } from 'aws-cdk-lib';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { describe, expect, test } from 'vitest';
import * as library from '../../lib/index.ts';

const { DeliveryAlarms, Mailroom, MailroomBus } = library;

/** Makes a construct as a program in JavaScript does, without a compiler. */
type Make = new (scope: Stack, id: string, props?: unknown) => unknown;

/** Each construct that an app creates, with its required properties. */
const CONSTRUCTS = {
  BusForward: ['bus', 'target', 'from', 'events', 'removalPolicy'],
  DeliveryAlarms: ['mailroom', 'alarms'],
  InboxConsumer: ['mailroom', 'name', 'service', 'events'],
  Mailroom: [],
  MailroomBus: [],
  MailroomTable: [],
  MysqlMailroom: ['database'],
  OutboxAudit: ['table', 'bus'],
  OutboxHeartbeat: ['table', 'shards', 'streamLease'],
  OutboxRelay: ['table', 'bus', 'shards', 'streamLease', 'sources'],
  OverviewDashboard: [],
  PostgresMailroom: ['database'],
  ServiceFunction: ['service'],
} as const;

const classOf = new Map<string, unknown>(Object.entries(library));

const errorOf = (run: () => unknown): unknown => {
  try {
    run();
    return undefined;
  } catch (error) {
    return error;
  }
};

const made = (name: keyof typeof CONSTRUCTS, props?: object): unknown =>
  errorOf(() => new (classOf.get(name) as Make)(new Stack(new App(), 'App'), 'It', props));

describe('a program in JavaScript', () => {
  test('can make every construct of the library, and this test knows each', () => {
    const classes = [...classOf].filter(
      ([name, value]) =>
        typeof value === 'function' && /^class/.test(String(value)) && name !== 'MailroomBase',
    );
    expect(classes.map(([name]) => name).sort()).toEqual(Object.keys(CONSTRUCTS).sort());
  });

  test.each(Object.entries(CONSTRUCTS))(
    '%s names an unknown property, and each that is missing',
    (name, required) => {
      const error = made(name as keyof typeof CONSTRUCTS, { tabel: 1, absent: undefined });
      expect(error).toMatchObject({ code: 'BAD_SETTINGS' });
      const { message } = error as Error;
      expect(message).toContain('tabel is not a property. Properties: ');
      expect(message).not.toContain('absent');
      for (const property of required) expect(message).toContain(`${property} is missing.`);
    },
  );

  test.each(Object.entries(CONSTRUCTS).filter(([, required]) => required.length > 0))(
    '%s names what is missing when it receives no properties, and when it receives null',
    (name, required) => {
      const nothing = made(name as keyof typeof CONSTRUCTS);
      expect(nothing).toMatchObject({ code: 'BAD_SETTINGS' });
      const nulls = made(
        name as keyof typeof CONSTRUCTS,
        Object.fromEntries(required.map((property) => [property, null])),
      );
      for (const property of required) {
        expect((nothing as Error).message).toContain(`${property} is missing.`);
        expect((nulls as Error).message).toContain(`${property} is missing.`);
      }
    },
  );

  test.each(['function', 'queue', 'retry', 'order'])('InboxConsumer names %s where it is null', (group) => {
    const names = { mailroom: {}, name: 'one', service: 'bank', events: [] };
    expect(made('InboxConsumer', { ...names, [group]: null })).toMatchObject({
      message: `The consumer App/It has invalid settings: ${group} is null. Set it or omit it.`,
    });
    if (group !== 'order')
      expect(made('InboxConsumer', { ...names, [group]: { tabel: 1 } })).toMatchObject({
        message: expect.stringContaining(`${group}.tabel is not a property. Properties: `),
      });
  });

  test('DeliveryAlarms names what is missing or unknown in its topics and thresholds', () => {
    const stack = new Stack(new App(), 'App');
    const mailroom = new Mailroom(stack, 'Mailroom');
    const page = new Topic(stack, 'Page');
    const alarms = (id: string, props: object) =>
      errorOf(() => new (DeliveryAlarms as unknown as Make)(stack, id, { mailroom, ...props }));
    expect(alarms('A', { alarms: { page, tickets: page } })).toMatchObject({
      message: expect.stringMatching(
        /alarms\.ticket is missing\.[\s\S]*alarms\.tickets is not a property\. Properties: page, ticket\./,
      ),
    });
    expect(alarms('B', { alarms: { page, ticket: page }, thresholds: { deadForHours: 8 } })).toMatchObject({
      message: expect.stringContaining(
        'thresholds.deadForHours is not a property. Properties: oldestPending,',
      ),
    });
  });

  test('each option of a Mailroom’s parts is named where it is wrong', () => {
    const stack = new Stack(new App(), 'App');
    const props = { relay: { sweepEach: 1 } };
    expect(errorOf(() => new (Mailroom as unknown as Make)(stack, 'Mailroom', props))).toMatchObject({
      message: expect.stringContaining(
        'The relay App/Mailroom/Relay has invalid settings: sweepEach is not a property.',
      ),
    });
  });

  test('addProducer, forwardTo and acceptFrom name what is missing', () => {
    const stack = new Stack(new App(), 'App');
    const mailroom = new Mailroom(stack, 'Mailroom');
    const bus = new MailroomBus(stack, 'Bus');
    const calls: readonly [() => unknown, string][] = [
      [() => mailroom.addProducer({ node: stack.node } as never, {} as never), 'service is missing.'],
      [() => bus.forwardTo(bus, {} as never), 'from is missing.'],
      [
        () => bus.acceptFrom({ roel: 'x' } as never),
        'roel is not a property. Properties: role, from, events, account.',
      ],
    ];
    for (const [call, text] of calls)
      expect(errorOf(call)).toMatchObject({ code: 'BAD_SETTINGS', message: expect.stringContaining(text) });
  });
});
