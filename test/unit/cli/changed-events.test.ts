import { describe, expect, test } from 'vitest';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { worker } from './support/mailroom-in-memory.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { APPLY, source } from './support/rejected-event.ts';
import { resourcesInMemory, targetOf } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const DISCARD = ['dlq', 'discard', source, '--all'] as const;

/** The parts of an event that a rule's target can send in its place. */
const PARTS: Readonly<Record<string, (event: Record<string, unknown>) => unknown>> = {
  'the envelope': ({ detail }) => detail,
  'the data': ({ detail }) => Object(detail).data,
  'a sentence with its id': ({ detail }) => `Event ${Object(detail).eventId} has happened`,
};

/** A Mailroom whose rule has changed two events on the way to the queue, and the dead letters of their messages. */
async function changed(part: (event: Record<string, unknown>) => unknown, count = 2) {
  const ran: number[] = [];
  const mailroom = operatingMailroom([leased(ThingHappened, async ({ data: { n } }) => void ran.push(n))]);
  const { queue } = mailroom;
  const events = [...Array(count).keys()].map((index) => mailroom.happened(index + 1));
  const committed = await mailroom.outbox.commit({ events });
  const { send } = queue;
  /** The bodies of the messages before the change. */
  const whole: string[] = [];
  const sendPart = (body: string) => {
    whole.push(body);
    return send(JSON.stringify(part(JSON.parse(body))));
  };
  Object.assign(queue, { send: sendPart });
  await mailroom.publish();
  Object.assign(queue, { send });
  await mailroom.drain();
  expect(queue.deadLetters()).toHaveLength(count);
  const deployed = resourcesInMemory(mailroom.directory);
  const run = async (...argv: readonly string[]) => {
    const { out, err } = await mailroom.until(runInMemory({ ...mailroom, deployed }, argv));
    return out || err;
  };
  return {
    ...mailroom,
    ran,
    whole,
    deployed,
    run,
    document: async (...argv: readonly string[]) => JSON.parse(await run(...argv, '--json')),
    ids: committed.map(({ eventId }) => eventId),
    letters: async () => (await mailroom.queues.receive(worker.deadLetterQueue, { limit: 10 })).length,
    /** The rule changes events again. */
    changeTarget: () => {
      const { targets: [target = targetOf('')] = [] } = deployed.rules.get('bus|worker-rule') ?? {};
      deployed.changeRule('bus|worker-rule', { targets: [{ ...target, input: 'InputPath' }] });
    },
  };
}

describe.each(Object.entries(PARTS))(
  'a discard of unreadable messages that are %s of events',
  (_what, part) => {
    test('sends the events to their consumer first', async () => {
      const { document, ids, ran, drain, letters, sent } = await changed(part);
      const plan = await document(...DISCARD);
      expect(plan.deadLetters.map(({ outcome }: { outcome: string }) => outcome)).toEqual([
        'repair',
        'repair',
      ]);
      expect(new Set(plan.deadLetters.flatMap(({ events }: { events: string[] }) => events))).toEqual(
        new Set(ids),
      );
      expect(sent).toEqual([]);
      const made = await document(...DISCARD, ...APPLY);
      expect(made.deadLetters).toMatchObject([{ outcome: 'repaired' }, { outcome: 'repaired' }]);
      await drain();
      expect(ran.toSorted()).toEqual([1, 2]);
      expect(await letters()).toBe(0);
    });

    test('names the events that the consumer has received meanwhile, and sends none again', async () => {
      const { document, ids, ran, drain, sent, queue, whole } = await changed(part);
      for (const body of whole) queue.send(body);
      await drain();
      const plan = await document(...DISCARD);
      expect(plan.deadLetters).toMatchObject([{ outcome: 'discard' }, { outcome: 'discard' }]);
      for (const id of ids) expect(JSON.stringify(plan)).toContain(id);
      await document(...DISCARD, ...APPLY);
      await drain();
      expect(ran.toSorted()).toEqual([1, 2]);
      expect(sent).toEqual([]);
    });
  },
);

const envelope = PARTS['the envelope'] ?? (() => undefined);

test('a discard that stops between the send and the discard leaves the message, and its repetition loses and doubles nothing', async () => {
  const { document, ran, drain, letters, queues } = await changed(envelope, 1);
  const { remove } = queues;
  Object.assign(queues, { remove: () => Promise.reject(new Error('The command died')) });
  await document(...DISCARD, ...APPLY);
  expect(await letters()).toBe(1);
  Object.assign(queues, { remove });
  await document(...DISCARD, ...APPLY);
  await drain();
  expect(ran).toEqual([1]);
  expect(await letters()).toBe(0);
});

test('a message whose event could not be sent is not discarded', async () => {
  const { document, letters, memory, queue, queues } = await changed(envelope, 2);
  const [{ body = '' } = {}] = queue.deadLetters();
  const { send } = queues;
  let sends = 0;
  const failing = (url: string, text: string) =>
    ++sends === 1 ? Promise.reject(new Error('SQS is away')) : send(url, text);
  Object.assign(queues, { send: failing });
  const made = await document(...DISCARD, ...APPLY);
  expect(made.deadLetters.map(({ outcome }: { outcome: string }) => outcome).toSorted()).toEqual([
    'failed',
    'repaired',
  ]);
  expect(await letters()).toBe(1);
  expect(memory.item(inboxKey(worker.name, unreadableId(body)))).toMatchObject({ status: 'REJECTED' });
});

test('the discard of a message in which no event is recognized names the audit', async () => {
  const { run, document, letters } = await changed(() => ({ nothing: 'of the event' }), 1);
  const text = unwrapped(await run(...DISCARD));
  expect(text).toContain('No event of the outbox is recognized in these unreadable messages');
  expect(text).toContain('audit --since 1h');
  const made = await document(...DISCARD, ...APPLY);
  expect(made.deadLetters).toMatchObject([{ outcome: 'discarded' }]);
  expect(await letters()).toBe(0);
});

test('while the rule changes events, the plan of a discard and of a redrive name the command that restores it first', async () => {
  const { run, document, changeTarget } = await changed(envelope);
  changeTarget();
  const fix = 'aws events put-targets --rule worker-rule --event-bus-name bus --targets';
  for (const command of [DISCARD, ['dlq', 'redrive', source], ['dlq', 'list', source, '--by', 'cause']]) {
    const text = unwrapped(await run(...command));
    expect(text).toContain('its rule worker-rule changes them (InputPath)');
    expect(text).toContain(fix);
    expect(text.indexOf(fix)).toBeLessThan(text.indexOf('dlq discard consumer:worker'));
  }
  expect((await document(...DISCARD)).rule).toMatchObject({ problem: 'target-input' });
});

test('a redrive of unreadable messages suggests a discard that looks for their events', async () => {
  const { run } = await changed(envelope);
  const text = unwrapped(await run('dlq', 'redrive', source));
  expect(text).toContain('The plan of a discard looks for the events of them in the outbox');
  expect(text).not.toContain('with other data');
});
