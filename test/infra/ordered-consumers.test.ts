import { Duration, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import { type EventOrder, latest, strict } from '../../lambdas/runtime/base/order.ts';
import { defineEvent, type EventRef } from '../../lambdas/runtime/events/event.ts';
import { externalEvent } from '../../lambdas/runtime/events/external-event.ts';
import { subscribe } from '../../lambdas/runtime/events/subscribe.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, type InboxConsumerProps, Mailroom } from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

const Opened = numbered('ledger', 'AccountOpened', 'Account');
const Booked = numbered('ledger', 'AmountBooked', 'Account');
const Closed = numbered('ledger', 'AccountClosed', 'Account');
const Mailed = defineEvent({
  source: 'ledger',
  type: 'StatementMailed',
  version: 1,
  aggregateType: 'Account',
  schema: z.object({}),
});
const Charged = externalEvent({
  source: 'bank',
  type: 'Charged',
  schema: z.object({ id: z.string() }),
  id: 'id',
});

function numbered(source: string, type: string, aggregateType: string) {
  const schema = z.object({ cents: z.int() });
  return defineEvent({ source, type, version: 1, aggregateType, schema, sequence: true });
}

/** A stack with an ordered consumer. @param published - the events of the ledger, whose producer is added after the consumer */
function stackWith(props: Partial<InboxConsumerProps>, published: readonly EventRef[] = []): Stack {
  const stack = new Stack(testApp(), 'Test');
  const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['ledger', 'books'] });
  new InboxConsumer(stack, 'Balances', {
    mailroom,
    name: 'balances',
    service: 'balances',
    events: [Opened, Booked],
    entry: lambdaEntry('example/inventory/handler'),
    order: strict(),
    ...props,
  });
  if (published.length > 0) {
    const code = Code.fromInline('exports.handler = async () => {};');
    const producer = { code, handler: 'index.handler', runtime: Runtime.NODEJS_22_X };
    const ledger = new LambdaFunction(stack, 'Ledger', producer);
    mailroom.addProducer(ledger, { service: 'ledger', publishes: published });
  }
  return stack;
}

function warningsOf(stack: Stack): string[] {
  return Annotations.fromStack(stack)
    .findWarning('*', Match.stringLikeRegexp('^order is'))
    .map(({ entry }) => String(entry.data));
}

test.each<[EventOrder, string, number | undefined]>([
  [strict(), 'strict:block', 105],
  [strict({ onReject: 'skip' }), 'strict:skip', 105],
  [latest(), 'latest', 105],
  [latest({ group: 'account' }), 'latest:account', 105],
])('order %j reaches the function and the directory as %s', (order, text, maxReceives) => {
  const template = Template.fromStack(stackWith({ order }));
  const [{ Properties } = { Properties: {} }] = Object.values(
    resources(template, 'AWS::Lambda::Function'),
  ).filter((each) => each.Properties.Environment?.Variables.MAILROOM_CONSUMER === 'balances');
  const variables = {
    ...Properties.Environment.Variables,
    MAILROOM_TABLE: 'table',
    MAILROOM_QUEUE_URL: 'url',
  };
  expect(readConsumerConfig(variables)).toMatchObject({ order });
  expect(readConsumerConfig(variables).maxReceives).toBe(maxReceives);
  const [queue] = Object.entries(resources(template, 'AWS::SQS::Queue')).filter(([id]) =>
    id.includes('BalancesQueue'),
  );
  expect(queue?.[1].Properties.RedrivePolicy.maxReceiveCount).toBe(105);
  expect(JSON.stringify(resources(template, 'AWS::SSM::Parameter'))).toContain(`\\"order\\":\\"${text}\\"`);
});

test('the directory says which events have a number of the order', () => {
  const template = Template.fromStack(
    stackWith({ events: [Opened, Mailed, subscribe(Booked, { filter: { cents: [1] } })], order: latest() }),
  );
  const entries = JSON.stringify(resources(template, 'AWS::SSM::Parameter')).replaceAll('\\', '');
  const isNumbered = ({ type }: EventRef) =>
    new RegExp(`"type":"${type}",("filter":{[^}]*},)?"sequence":true`).test(entries);
  expect([Opened, Mailed, Booked].map(isNumbered)).toEqual([true, false, true]);
});

describe('an order is refused', () => {
  test('if no definition in events declares sequence', () => {
    const events = [Mailed, { source: 'ledger', type: 'AccountOpened' }];
    expect(() => stackWith({ events })).toThrow(
      'order is strict:block, but no definition in events declares sequence, so there is nothing to order. Set sequence: true in a definition of ' +
        'StatementMailed, AccountOpened and pass that definition, or omit order.',
    );
    expect(() => stackWith({ events, order: latest() })).toThrow(
      'order is latest, but no definition in events',
    );
  });

  test('if events contains external events only', () => {
    expect(() => stackWith({ events: [Charged] })).toThrow(
      'order is strict:block, but events contains external events only, which carry no sequence. Omit order.',
    );
  });

  test('if it was made by hand', () => {
    expect(() => stackWith({ order: { mode: 'strict' } as EventOrder })).toThrow(
      'order is {"mode":"strict"}, but must be made by strict(…) or latest(…). Use one of them.',
    );
  });

  test('if it is strict and an event with a sequence is filtered; latest accepts a filter', () => {
    const events = [Opened, subscribe(Booked, { filter: { cents: [{ numeric: ['>', 0] }] } })];
    expect(() => stackWith({ events })).toThrow(
      'order is strict:block, but events contains AmountBooked of "ledger" with a filter: each event that it leaves out would hold up the events ' +
        'after it. List the definition itself, or use order: latest().',
    );
    expect(() => stackWith({ events, order: latest() })).not.toThrow();
  });
});

describe('a strict consumer must receive every number of its aggregates', () => {
  const gap =
    'The consumer Test/Balances has order strict:block, but events does not contain every event of "ledger" that numbers the same Account: AccountClosed. ' +
    'Each of these would hold up the events after it. Add them to events without a filter, or use order: latest().';

  test('one that does not subscribe to a type of the same aggregate is refused at synth', () => {
    const stack = stackWith({}, [Opened, Booked, Closed, Mailed]);
    expect(stack.node.findChild('Balances').node.validate()).toEqual([gap]);
    expect(() => Template.fromStack(stack)).toThrow(gap);
  });

  test('one that names an event without its definition is checked by the definition of its producer', () => {
    const events = [numbered('books', 'BookSold', 'Book'), { source: 'ledger', type: 'AccountOpened' }];
    const [problem, ...others] = stackWith({ events }, [Opened, Closed])
      .node.findChild('Balances')
      .node.validate();
    expect(problem).toBe(gap);
    expect(others).toEqual([]);
  });

  test('one that filters such an event is refused, too', () => {
    const filtered = { source: 'ledger', type: 'AccountClosed', filter: { cents: [0] } };
    const stack = stackWith({ events: [Opened, Booked, filtered] }, [Opened, Booked, Closed]);
    expect(stack.node.findChild('Balances').node.validate()).toEqual([gap]);
  });

  test('events without a sequence, of other aggregates and of other services may be missing', () => {
    const others = [numbered('ledger', 'BranchOpened', 'Branch'), Mailed];
    const stack = stackWith({}, [Opened, Booked, ...others]);
    expect(stack.node.findChild('Balances').node.validate()).toEqual([]);
  });

  test('a declaration without a definition does not hide one with it', () => {
    const stack = stackWith({}, [Closed, { source: 'ledger', type: 'AccountClosed' }]);
    expect(stack.node.findChild('Balances').node.validate()).toEqual([gap]);
  });

  test('with latest, none is required', () => {
    const stack = stackWith({ order: latest() }, [Opened, Booked, Closed]);
    expect(stack.node.findChild('Balances').node.validate()).toEqual([]);
  });
});

describe('an order warns', () => {
  test('of a strict consumer whose messages wait for less than 15 minutes', () => {
    const short = { retry: { outageTolerance: Duration.minutes(0), maxAttempts: 5 } };
    expect(warningsOf(stackWith(short))).toEqual([
      'order is strict:block, but a message has 20 receives, so it waits for at most 14 minutes 3 seconds for the event before it; then it is ' +
        'rejected (OUT_OF_ORDER). Raise retry.outageTolerance, or acknowledge this warning. [ack: cdk-mailroom:shortWait]',
    ]);
    expect(warningsOf(stackWith({ retry: { ...short.retry, maxAttempts: 6 } }))).toEqual([]);
    expect(warningsOf(stackWith({ ...short, order: latest() }))).toEqual([]);
  });

  test('not of two services that number the same kind of aggregate: each has its own sequences', () => {
    const events = [Opened, Booked, numbered('books', 'AccountOpened', 'Account')];
    for (const order of [strict(), latest(), latest({ group: 'account' })])
      expect(warningsOf(stackWith({ events, order }))).toEqual([]);
  });
});

describe('punctual', () => {
  const variables = (props: object) => {
    const stack = new Stack(testApp(), 'Test');
    new Mailroom(stack, 'Mailroom', props);
    return Object.values(resources(Template.fromStack(stack), 'AWS::Lambda::Function')).flatMap(
      ({ Properties }) => Properties.Environment?.Variables.MAILROOM_PUNCTUAL ?? [],
    );
  };

  test('is set on both functions of the relay, and only if it is true and has an effect', () => {
    expect(variables({ punctual: true })).toEqual(['true', 'true']);
    expect(variables({ punctual: true, relay: { sweepEvery: Duration.minutes(2) } })).toEqual([
      'true',
      'true',
    ]);
    expect(variables({ punctual: true, relay: { sweepEvery: Duration.seconds(30) } })).toEqual([]);
    expect(variables({ punctual: false })).toEqual([]);
    expect(variables({})).toEqual([]);
  });
});
