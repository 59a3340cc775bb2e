import { describe, expect, test } from 'vitest';
import { MOVES_MAX, movesBetween } from '../../../../../cli/page/client/flow/moving-dots.ts';
import { arrivedEvents, storiesOf, summaryOf } from '../../../../../cli/page/client/flow/stories.ts';
import { rejectedAlone, troublesAt, troublesOf } from '../../../../../cli/page/client/flow/troubles.ts';
import type { FlowEvent, StatusDocument } from '../../../../../cli/page/server/protocol.ts';
import { deadLettersOf } from '../../../../../cli/reports/status/consumer-dead-letters.ts';

function flowEvent(eventId: string, rest: Partial<FlowEvent> = {}): FlowEvent {
  return {
    eventId,
    at: 1_000,
    type: 'OrderPlaced',
    source: 'orders',
    status: 'PUBLISHED',
    consumers: {},
    aggregateType: 'Order',
    aggregateId: 'order-1',
    correlationId: null,
    publishedAt: 1_000,
    ...rest,
  };
}

describe('the newest events', () => {
  test('those with one correlation id are a story in order of commit; the story with the newest event is first', () => {
    const events = [
      flowEvent('c', { at: 3, correlationId: 'order 1' }),
      flowEvent('b', { at: 2 }),
      flowEvent('a', { at: 1, correlationId: 'order 1' }),
    ];
    expect(storiesOf(events).map(({ id, at, events }) => [id, at, events.map((e) => e.eventId)])).toEqual([
      ['order 1', 3, ['a', 'c']],
      ['b', 2, ['b']],
    ]);
  });

  test('a cancelled timer is left out, unless nothing else happened', () => {
    const timer = flowEvent('timer', { status: 'CANCELLED', correlationId: 'order 1' });
    const placed = flowEvent('placed', { correlationId: 'order 1' });
    const idsOf = (events: readonly FlowEvent[]) =>
      storiesOf(events).flatMap((story) => story.events.map(({ eventId }) => eventId));
    expect(idsOf([timer, placed])).toEqual(['placed']);
    expect(idsOf([timer])).toEqual(['timer']);
  });

  test.each([
    ['PENDING', {}, 'busy', 'pending'],
    ['DEAD', {}, 'broken', 'dead'],
    ['PUBLISHED', {}, 'ok', 'published'],
    ['PUBLISHED', { mail: 'processed', payments: 'processed' }, 'ok', 'processed'],
    ['PUBLISHED', { mail: 'processed', payments: 'waiting' }, 'busy', 'waiting at payments'],
    [
      'PUBLISHED',
      { mail: 'failed', payments: 'failed', stock: 'working' },
      'look',
      'failed at mail, payments',
    ],
    ['PUBLISHED', { mail: 'failed', payments: 'rejected' }, 'broken', 'rejected at payments'],
    ['UNREADABLE', {}, 'broken', 'unreadable'],
  ] as const)('the worst of %s and %j is %s: %s', (status, consumers, is, text) => {
    expect(summaryOf({ status, consumers })).toEqual({ is, text });
  });
});

describe('a message without a row', () => {
  const event = flowEvent('e', { publishedAt: 100_000, consumers: { mail: 'waiting', stock: 'processed' } });
  const at = 300_000;
  const settled = { backlog: 0 } as StatusDocument['consumers'][string];
  const missing = { consumer: 'mail', look: 'missing', messages: 1, forMs: 200_000, missingUntil: 240_000 };
  const off = { part: 'mail', problem: 'rule-disabled', text: '', level: 'flow', fix: [], commands: [] };
  const status = (looks: readonly object[], problems: readonly object[] = [], rest: object = {}) =>
    ({
      ...{ at, looks, wiring: { problems, notChecked: [], skipped: [] }, deadLetterSources: [] },
      ...{ consumers: { mail: settled }, ...rest },
    }) as unknown as StatusDocument;
  const letters = [{ source: 'rule:mail', count: 1, oldestAt: null, firstExpiryAt: null }];
  const shown = (known: StatusDocument | null, one = event) =>
    arrivedEvents([one], known).map((seen) => summaryOf(seen).text);

  test.each([
    ['nothing is known', null, event, 'waiting at mail'],
    ['the status has no warning', status([]), event, 'waiting at mail'],
    ['events are missing there', status([missing]), event, 'not arrived at mail'],
    ['they are missing elsewhere', status([{ ...missing, consumer: 'stock' }]), event, 'waiting at mail'],
    ['it is younger', status([missing]), { ...event, publishedAt: 240_000 }, 'waiting at mail'],
    ['its rule is off', status([], [off]), event, 'not arrived at mail'],
    ['its mapping is off', status([], [{ ...off, problem: 'mapping-disabled' }]), event, 'waiting at mail'],
    [
      'its rule is off, and its queue is not empty',
      status([], [off], { consumers: { mail: { backlog: 1 } } }),
      event,
      'waiting at mail',
    ],
    [
      'its rule is off, and it may be undelivered',
      status([], [off], { deadLetterSources: letters }),
      event,
      'waiting at mail',
    ],
  ] as const)('%s', (_, known, one, text) => {
    expect(shown(known, one)).toEqual([text]);
  });
});

describe('the moves of events along the edges', () => {
  const pending = flowEvent('e', { status: 'PENDING', consumers: { mail: 'waiting', stock: 'waiting' } });
  const waiting = { ...pending, status: 'PUBLISHED' };
  const claimed = flowEvent('e', { consumers: { mail: 'processed', stock: 'working' } });
  const edges = (before: readonly FlowEvent[] | undefined, after: readonly FlowEvent[]) =>
    movesBetween(before, after, 2_000).map(({ edge, step }) => `${step} ${edge}`);

  test('nothing moves at the first reading, nor between two that are the same', () => {
    expect(edges(undefined, [claimed])).toEqual([]);
    expect(edges([claimed], [claimed])).toEqual([]);
  });

  test('an event moves along each edge once, and to all consumers at the same time', () => {
    expect(edges([], [pending])).toEqual(['0 commit']);
    expect(edges([pending], [waiting])).toEqual(['0 publish']);
    expect(edges([waiting], [claimed])).toEqual(['0 deliver:mail', '0 deliver:stock']);
    expect(edges([], [claimed])).toEqual(['0 commit', '1 publish', '2 deliver:mail', '2 deliver:stock']);
  });

  test('an event from before the last minute does not move when it is found, and does when it comes further', () => {
    const moves = (before: readonly FlowEvent[]) => movesBetween(before, [waiting], 61_001).length;
    expect(moves([])).toBe(0);
    expect(moves([pending])).toBe(1);
  });

  test('at most 40 dots move', () => {
    const many = Array.from({ length: 50 }, (_, index) => flowEvent(`e${index}`));
    expect(movesBetween([], many, 2_000)).toHaveLength(MOVES_MAX);
  });
});

describe('the parts of the diagram', () => {
  const ruleOff = 'mail receives no events: its rule mail-rule is disabled';
  const status = {
    findings: [],
    atLeast: ['outbox.dead'],
    outbox: { dead: 2, stuck: [] },
    consumers: { mail: { failed: 0, rejected: 5 }, payments: { failed: 4, rejected: 4 } },
    wiring: {
      problems: [
        { part: 'mail', problem: 'rule-disabled', text: ruleOff },
        { part: 'mail', problem: 'mapping-disabled', text: 'mail receives no messages' },
      ],
      notChecked: [{ needs: ['lambda:GetFunctionConcurrency'], parts: ['sweep'] }],
    },
    looks: [{ consumer: 'mail', look: 'stalled' }],
    heartbeat: { late: [{ consumer: 'payments' }] },
    deadLetterSources: [
      { source: 'consumer:payments', count: 2 },
      { source: 'rule:payments', count: 1 },
      { source: 'consumer:mail', count: 5 },
    ],
  } as unknown as StatusDocument;

  const at = (found: StatusDocument, ...parts: readonly string[]) =>
    troublesAt(troublesOf(found), ...parts).map(({ is, text }) => `${is}: ${text}`);

  test('each trouble is named at its part, the broken ones first', () => {
    expect(at(status, 'mail')).toEqual([
      'broken: Rule off',
      'broken: Mapping off',
      'broken: 5 dead letters',
      'look: Claims nothing',
    ]);
    expect(at(status, 'stream relay', 'sweep')).toEqual(['look: Not checked']);
    expect(at(status, 'table')).toEqual(['broken: 2+ DEAD events']);
    expect(at(status, 'bus')).toEqual([]);
  });

  test('an outbox with events that should be published by now is not well', () => {
    const stuck = [{ because: 'due', events: 17, since: 0, store: null }];
    const found = { ...status, outbox: { ...status.outbox, stuck } } as unknown as StatusDocument;
    expect(at(found, 'table')).toEqual(['broken: 2+ DEAD events', 'broken: 17 not published']);
    const acknowledged = { by: 'ada', until: 1, reason: 'known' };
    const finding = { code: 'events-pending', part: 'outbox', resource: 'due', acknowledged };
    expect(at({ ...found, findings: [finding] } as unknown as StatusDocument, 'table')).toContain(
      'idle: 17 not published',
    );
  });

  test('a rejected message with a dead letter is counted once, and one without as rejected', () => {
    expect(at(status, 'payments')).toEqual([
      'broken: 3 dead letters',
      'broken: 1 rejected',
      'look: 4 retrying',
      'look: Heartbeat late',
    ]);
    expect([rejectedAlone(status, 'payments'), rejectedAlone(status, 'mail')]).toEqual([1, 0]);
  });

  test('a trouble whose finding an operator has acknowledged is idle, and its edge is, too', () => {
    const acknowledged = { by: 'ada', until: 1, reason: 'known' };
    const known = [
      { code: 'rule-disabled', part: 'mail' },
      { code: 'dead-letters', part: 'consumer:payments' },
      { code: 'dead-letters', part: 'dead' },
      { code: 'stalled', part: 'mail' },
    ];
    const findings = known.map((finding) => ({ ...finding, acknowledged }));
    const found = { ...status, findings } as unknown as StatusDocument;
    expect(at(found, 'mail')).toEqual([
      'broken: Mapping off',
      'broken: 5 dead letters',
      'idle: Rule off',
      'idle: Claims nothing',
    ]);
    expect(at(found, 'table')).toEqual(['idle: 2+ DEAD events']);
    // The finding about the dead letters of its rule is not acknowledged.
    expect(at(found, 'payments')).toContain('broken: 3 dead letters');
    const both = [...findings, { code: 'dead-letters', part: 'rule:payments', acknowledged }];
    expect(at({ ...found, findings: both } as unknown as StatusDocument, 'payments')).toContain(
      'idle: 3 dead letters',
    );
    // Acknowledged is the rule of its Mailroom events, not that of its external ones.
    const external = { part: 'mail', problem: 'rule-disabled', resource: 'external', text: ruleOff };
    const two = { ...found, wiring: { problems: [external], notChecked: [] } };
    expect(at(two as unknown as StatusDocument, 'mail')).toContain('broken: Rule off');
  });

  test('the dead letters of one source link to it, and those of both to all', () => {
    const routes = troublesOf(status).flatMap(({ text, route }) => (/dead letter/.test(text) ? [route] : []));
    expect(routes).toEqual(['#/dead-letters/consumer%3Amail', '#/dead-letters']);
  });

  test.each([
    ['missing', 'look: Events missing'],
    ['crashing', 'look: Finishes nothing'],
  ])('a consumer whose look is %s says: %s', (look, words) => {
    const found = troublesOf({ ...status, looks: [{ consumer: 'bus', look }] } as unknown as StatusDocument);
    expect(troublesAt(found, 'bus').map(({ is, text }) => `${is}: ${text}`)).toEqual([words]);
  });

  test('a rule that is off cuts the edge before the consumer, a mapping does not', () => {
    expect(troublesOf(status).flatMap(({ stops }) => stops ?? [])).toEqual(['before', 'at']);
  });

  test('the dead letters of a consumer are those of both of its queues', () => {
    expect(deadLettersOf(status.deadLetterSources, 'payments')).toBe(3);
  });
});
