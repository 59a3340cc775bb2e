import { Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import type { Subscription } from '../../lambdas/runtime/events/data-filter.ts';
import { subscribe } from '../../lambdas/runtime/events/subscribe.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom } from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

const placed = { source: 'orders', type: 'OrderPlaced' };
const shipped = { source: 'orders', type: 'OrderShipped' };

function stackOf(events: readonly Subscription[]): Stack {
  const stack = new Stack(testApp(), 'Test');
  new InboxConsumer(stack, 'Consumer', {
    mailroom: new Mailroom(stack, 'Mailroom', { sources: ['orders'] }),
    name: 'customs',
    service: 'customs',
    events,
    entry: lambdaEntry('example/inventory/handler'),
  });
  return stack;
}

const withFilter = (filter: unknown) => () => stackOf([subscribe(shipped, { filter: filter as never })]);

test('a filter is part of the rule and of the directory entry, beside events without one', () => {
  const filter = { country: ['CH', 'NO'], totalCents: [{ numeric: ['>=', 10_000] }] };
  const template = Template.fromStack(stackOf([placed, subscribe(shipped, { filter })]));
  template.hasResourceProperties('AWS::Events::Rule', {
    EventPattern: {
      $or: [
        { source: ['orders'], 'detail-type': ['OrderPlaced'] },
        { source: ['mailroom'], 'detail-type': ['Heartbeat'] },
        { source: ['orders'], 'detail-type': ['OrderShipped'], detail: { data: filter } },
      ],
    },
  });
  const entries = JSON.stringify(resources(template, 'AWS::SSM::Parameter'));
  const entered = JSON.stringify([placed, { ...shipped, filter }]).slice(1, -1);
  expect(entries).toContain(JSON.stringify(entered).slice(1, -1));
});

test.each([
  [{ a: ['x', 1, true, null] }],
  [{ a: { b: [{ prefix: '' }, { suffix: 'x' }] } }],
  [{ a: [{ 'equals-ignore-case': 'é' }], b: [{ wildcard: 'a*b\\*\\\\' }] }],
  [{ a: [{ numeric: ['>', -5e9, '<=', 5e9] }, { numeric: ['=', 0.5] }, { exists: false }] }],
  [{ a: [{ 'anything-but': 'x' }, { 'anything-but': [1, 2] }, { 'anything-but': { prefix: ['x', 'y'] } }] }],
])('the filter %j is accepted', (filter) => {
  expect(withFilter(filter)).not.toThrow();
});

describe('a filter is refused with its field and the remedy', () => {
  test.each<[unknown, string]>([
    [{}, 'the filter of OrderShipped is {}, but must be an object with at least one field'],
    ['x', 'the filter of OrderShipped is "x", but must be an object'],
    [{ a: {} }, 'the filter of OrderShipped.a is {}, but must be an object with at least one field'],
    [{ a: [] }, 'the filter of OrderShipped.a is an empty list, which matches nothing'],
    [{ a: 'x' }, 'the filter of OrderShipped.a is "x", but must be a list of tests. Write ["x"].'],
    [{ a: [['x']] }, 'the filter of OrderShipped.a contains ["x"], but a test must be a string'],
    [{ a: [Number.NaN] }, 'but a test must be a string, a number'],
    [{ a: { $or: [{ b: [1] }, { c: [1] }] } }, 'the filter of OrderShipped.a.$or is not supported'],
    [{ 'a.b': [1] }, 'the filter of OrderShipped.a.b is a field with a "."'],
    [
      { a: [{ cidr: '10.0.0.0/8' }] },
      'exactly one of prefix, suffix, equals-ignore-case, wildcard, numeric, exists, anything-but.',
    ],
    [{ a: [{ prefix: 'x', suffix: 'y' }] }, 'exactly one of'],
    [{ a: [{ prefix: { 'equals-ignore-case': 'x' } }] }, 'but prefix must be a string.'],
    [{ a: [{ 'equals-ignore-case': '😀' }] }, 'must be a string without characters beyond U+FFFF'],
    [{ a: [{ wildcard: 'a**b' }] }, 'but wildcard must be a string without "**"'],
    [{ a: [{ wildcard: 'a\\b' }] }, 'a backslash is followed only by "*" or another backslash'],
    [{ a: [{ numeric: ['>', 5, '<', 1] }] }, 'whose lower end comes first'],
    [{ a: [{ numeric: ['<', 5, '>', 1] }] }, 'whose lower end comes first'],
    [{ a: [{ numeric: ['>=', 6e9] }] }, 'numbers from -5000000000 to 5000000000'],
    [{ a: [{ numeric: ['=', 1, '<', 2] }] }, 'but numeric must be one comparison'],
    [{ a: [{ exists: 'yes' }] }, 'but exists must be true or false.'],
    [{ a: [{ 'anything-but': ['x', 1] }] }, 'but anything-but must be strings, numbers (not both)'],
    [{ a: [{ 'anything-but': [] }] }, 'but anything-but must be'],
    [{ a: [{ 'anything-but': { prefix: '' } }] }, 'strings that are not empty'],
    [
      { a: [{ wildcard: '*x' }, { 'anything-but': { 'equals-ignore-case': 'k' } }] },
      'the filter of OrderShipped.a has both wildcard and equals-ignore-case, which EventBridge combines incorrectly',
    ],
    [{ a: ['x'.repeat(4_096)] }, 'characters, but EventBridge accepts 4096. Shorten the filters'],
  ])('%j', (filter, problem) => {
    expect(withFilter(filter)).toThrow(problem);
  });

  test('a second subscription to an event is refused', () => {
    expect(() => stackOf([shipped, subscribe(shipped, { filter: { a: [1] } })])).toThrow(
      'events contains OrderShipped of "orders" twice, with a filter. Subscribe to it once',
    );
  });
});

test('a pattern beyond the default quota of an account causes a warning', () => {
  const long = withFilter({ a: ['x'.repeat(2_048)] })();
  const found = (stack: Stack) =>
    Annotations.fromStack(stack).findWarning('/Test/Consumer', Match.stringLikeRegexp('Event pattern size'));
  expect(found(long)).toHaveLength(1);
  expect(found(withFilter({ a: ['x'] })())).toEqual([]);
});
