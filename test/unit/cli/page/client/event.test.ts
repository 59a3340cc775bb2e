import { describe, expect, test } from 'vitest';
import type { EventReport } from '../../../../../cli/page/client/event/waterfall.ts';
import {
  chainOf,
  commandLike,
  lanesOf,
  laneWord,
  spanOf,
} from '../../../../../cli/page/client/event/waterfall.ts';
import { ticksOf } from '../../../../../cli/page/client/frame/ticks.ts';

type Line = EventReport['story'][number];

function line(at: number | null, what: Line['what'], consumer: string | null = null): Line {
  return { at, what, consumer, text: what };
}

const NOW = 10_000;

describe('the waterfall of an event', () => {
  const story = [
    line(1_000, 'committed'),
    line(1_300, 'published'),
    line(1_400, 'claimed', 'payments'),
    line(1_500, 'effect-started', 'payments'),
    line(1_900, 'effect-completed', 'payments'),
    line(2_000, 'processed', 'payments'),
    line(1_450, 'claimed', 'mail'),
    line(1_460, 'effect-started', 'mail'),
    line(3_000, 'failed', 'mail'),
    line(60_000, 'next-attempt', 'mail'),
  ];
  const consumers = { payments: 'PROCESSED', mail: 'FAILED', stock: null };
  const lanes = lanesOf({ story, consumers }, NOW);
  const barsOf = (consumer: string | null) =>
    lanes
      .find((lane) => lane.consumer === consumer)
      ?.bars.map(({ kind, from, to }) => `${kind} ${from}-${to}`);

  test('it has a lane for the outbox and for each consumer', () => {
    expect(lanes.map(({ consumer }) => consumer)).toEqual([null, 'payments', 'mail', 'stock']);
    expect(barsOf(null)).toEqual(['waiting 1000-1300']);
  });

  test('a processed message waits, is worked on, and has its effects', () => {
    expect(barsOf('payments')).toEqual(['waiting 1300-1400', 'working 1400-2000', 'effect 1500-1900']);
  });

  test('a message that was tried several times has a bar up to the end of each attempt', () => {
    const tried = [
      line(1_300, 'published'),
      line(2_000, 'attempt-ended', 'mail'),
      line(4_000, 'attempt-ended', 'mail'),
      line(8_000, 'claimed', 'mail'),
      line(8_500, 'rejected', 'mail'),
    ];
    const [, mail] = lanesOf({ story: tried, consumers: { mail: 'REJECTED' } }, NOW);
    expect(mail?.bars.map(({ kind, from, to }) => `${kind} ${from}-${to}`)).toEqual([
      'ended 1300-2000',
      'ended 2000-4000',
      'waiting 4000-8000',
      'working 8000-8500',
    ]);
  });

  test('a redriven message has no bar before its last attempt: it was rejected for an unknown part of that time', () => {
    const redriven = [
      line(1_300, 'published'),
      line(1_500, 'effect-started', 'mail'),
      line(null, 'redriven', 'mail'),
      line(9_000, 'claimed', 'mail'),
      line(9_500, 'processed', 'mail'),
    ];
    const [, mail] = lanesOf({ story: redriven, consumers: { mail: 'PROCESSED' } }, NOW);
    expect(mail?.bars.map(({ kind, from, to }) => `${kind} ${from}-${to}`)).toEqual(['working 9000-9500']);
  });

  test('an effect without a result lasts to the end of its attempt', () => {
    expect(barsOf('mail')).toEqual(['waiting 1300-1450', 'working 1450-3000', 'effect 1460-3000']);
  });

  test('a message that is not claimed waits until now', () => {
    expect(barsOf('stock')).toEqual(['waiting 1300-10000']);
  });

  test('marks tell good from bad, and what is scheduled does not stretch the scale', () => {
    const marks = lanes.find(({ consumer }) => consumer === 'mail')?.marks.map(({ kind }) => kind);
    expect(marks).toEqual(['plain', 'plain', 'bad', 'next']);
    expect(spanOf(lanes)).toEqual({ from: 1_000, to: NOW });
  });

  test('an attempt whose worker stopped has no bar, because its end is unknown', () => {
    const left = [line(1_300, 'published'), line(1_400, 'claimed', 'mail'), line(null, 'unfinished', 'mail')];
    const [, mail] = lanesOf({ story: left, consumers: { mail: 'PROCESSING' } }, NOW);
    expect(mail?.bars.map(({ kind }) => kind)).toEqual(['waiting']);
  });

  test('a scheduled event waits in the outbox from its due time on', () => {
    const due = [line(1_000, 'scheduled'), line(5_000, 'due')];
    const outboxOf = (story: readonly Line[], now: number) =>
      lanesOf({ story: [...story], consumers: {} }, now)[0];
    expect(outboxOf(due, 2_000)).toMatchObject({ bars: [], marks: [{ kind: 'plain' }, { kind: 'next' }] });
    expect(outboxOf(due, 7_000)?.bars).toMatchObject([{ kind: 'waiting', from: 5_000, to: 7_000 }]);
    const published = outboxOf([...due, line(6_000, 'published')], 7_000);
    expect(published?.bars).toMatchObject([{ from: 5_000, to: 6_000 }]);
    expect(spanOf([published ?? expect.unreachable()])).toEqual({ from: 5_000, to: 6_000 });
  });

  test('a story without a time has a span', () => {
    expect(spanOf(lanesOf({ story: [line(null, 'expired')], consumers: {} }, NOW))).toEqual({
      from: 0,
      to: 1,
    });
  });
});

describe('the chain of events', () => {
  const event = (eventId: string, ...caused: readonly string[]) => ({ eventId, caused });
  const shape = (...events: readonly ReturnType<typeof event>[]) =>
    chainOf(events).map(({ event: { eventId }, depth }) => `${'-'.repeat(depth)}${eventId}`);

  test('each event is followed by those that it caused', () => {
    expect(shape(event('a', 'b', 'd'), event('b', 'c'), event('d'), event('c'))).toEqual([
      'a',
      '-b',
      '--c',
      '-d',
    ]);
  });

  test('a circle ends, and no event is lost', () => {
    expect(shape(event('a', 'b'), event('b', 'a'))).toEqual(['a', '-b']);
  });
});

test.each([
  ['npx cdk-mailroom why 42 --stage dev', ' --stage dev'],
  ['npx cdk-mailroom why 42 --since 6h --stage dev --region eu-west-1', ' --stage dev --region eu-west-1'],
  ["npx cdk-mailroom why '--stage evil x' --stack s", ' --stack s'],
  ['npx cdk-mailroom why 42', ''],
])('the logs command of %s selects the same Mailroom', (command, options) => {
  expect(commandLike(command, 'logs 42')).toBe(`npx cdk-mailroom logs 42${options}`);
});

test.each([
  [1, ['0', '1 ms']],
  [7, ['0', '2 ms', '4 ms', '6 ms']],
  [1_900, ['0', '500 ms', '1,000 ms', '1,500 ms']],
  [23_000, ['0', '10 s', '20 s']],
  [300_000, ['0', '2 min', '4 min']],
  [5 * 3_600_000, ['0', '2 h', '4 h']],
  [400 * 86_400_000, ['0', '100 d', '200 d', '300 d', '400 d']],
])('a time axis of %d ms has labels at round times', (span, texts) => {
  expect(ticksOf(span).map(({ text }) => text)).toEqual(texts);
  for (const { part } of ticksOf(span)) expect(part).toBeLessThanOrEqual(1);
});

test.each([
  ['an event that is not published', { status: 'PENDING', what: 'committed' }, 'not published'],
  ['a published one', { status: 'PUBLISHED', what: 'not-arrived' }, 'not claimed'],
  ['one with a dead letter', { status: 'PUBLISHED', what: 'dead-letter' }, 'dead letter'],
] as const)(
  'the lane of a consumer without a row of %s says where it is',
  (_what, { status, what }, word) => {
    const story = [{ at: null, what, consumer: 'mail', text: '' }];
    expect(laneWord({ status, story }, 'mail', null)).toBe(word);
    expect(laneWord({ status, story }, 'mail', 'PROCESSED')).toBe('processed');
  },
);
