import { beforeAll, expect, test } from 'vitest';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { captured, countedBytes, tooWide } from './support/captured-output.ts';
import { mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { orderedMailroom } from './support/ordered-mailroom.ts';

/** The data of an event decides what its handler, or the bus, does with it. */
const N = { fine: 1, poison: 2, failing: 3, refused: 4 };

const handler = leased(ThingHappened, async ({ data: { n } }) => {
  if (n === N.poison) throw new PoisonMessage('the price is missing');
  if (n === N.failing) throw new Error('the bank answered 500: it is closed until nine');
});

/** A Mailroom in which each dead-letter source has one event of each kind. */
async function inTrouble() {
  const mailroom = mailroomInMemory([handler], {
    random: countedBytes(),
    bus: {
      failEntry: ({ detail }) =>
        detail.includes(`"n":${N.refused}`)
          ? { code: 'InvalidArgument', message: 'Not a JSON object' }
          : undefined,
    },
  });
  const commit = async (n: number) => {
    const [event] = await mailroom.outbox.commit({
      events: [ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } })],
    });
    return event?.eventId ?? '';
  };
  const ids = {
    dead: await commit(N.refused),
    processed: await commit(N.fine),
    rejected: await commit(N.poison),
  };
  for (let pass = 0; pass < 5; pass += 1) await mailroom.publish();
  await mailroom.drain();
  const failed = await commit(N.failing);
  await mailroom.publish();
  await mailroom.deliver();
  const waiting = await commit(N.fine);
  await mailroom.publish();
  const pending = await commit(N.fine);
  await mailroom.clock.advance(7_000);
  const changed = { by: 'arn:aws:sts::111122223333:assumed-role/ops/ada', reason: 'charged by phone' };
  const { table, clock } = mailroom;
  const deps = { table, clock, random: countedBytes() };
  await recordOperation(deps, { ...changed, command: 'messages resolve', subject: `worker ${ids.rejected}` });
  await mailroom.clock.advance(90_000);
  const letter = { body: 'not JSON', receiptHandle: 'r', attributes: {}, sentAt: clock.now() - 3_600_000 };
  mailroom.addDeadLetter(worker.undeliveredQueue, { ...letter, messageId: UNREADABLE });
  return { mailroom, ids: { ...ids, failed, waiting, pending } };
}

const UNREADABLE = '5f0a1a0c-6a2e-4f0f-9a3c-0c9d5b7e4f11';

let trouble: Awaited<ReturnType<typeof inTrouble>>;

beforeAll(async () => {
  trouble = await inTrouble();
});

type Ids = (typeof trouble)['ids'];

test.each<[string, (ids: Ids) => string[]]>([
  ['status', () => ['status']],
  ['why-dead', ({ dead }) => ['why', dead]],
  ['why-rejected', ({ rejected }) => ['why', rejected]],
  ['why-rejected-story', ({ rejected }) => ['why', rejected, '--story']],
  ['why-failed', ({ failed }) => ['why', failed]],
  ['why-waiting', ({ waiting }) => ['why', waiting]],
  ['why-pending', ({ pending }) => ['why', pending]],
  ['why-processed', ({ processed }) => ['why', processed]],
  ['why-by-aggregate', ({ processed }) => ['why', 'thing-1', '--payload', '--at', atOf(processed)]],
  ['why-nothing', () => ['why', 'order-1']],
  ['describe', () => ['describe', 'worker']],
  ['logs', ({ processed }) => ['logs', processed]],
  ['events-list', () => ['events', 'list']],
  ['events-list-by-cause', () => ['events', 'list', '--by', 'cause']],
  ['events-list-published', () => ['events', 'list', '--published', '--limit', '2']],
  ['events-republish-plan', ({ rejected }) => ['events', 'republish', rejected]],
  ['messages-list', () => ['messages', 'list']],
  ['messages-list-by-cause', () => ['messages', 'list', '--by', 'cause']],
  ['messages-list-waiting', () => ['messages', 'list', '--waiting']],
  ['dlq-list', () => ['dlq', 'list']],
  ['dlq-list-by-cause', () => ['dlq', 'list', '--by', 'cause']],
  ['dlq-show', ({ rejected }) => ['dlq', 'show', 'consumer:worker', rejected, '--payload']],
  ['dlq-show-unreadable', () => ['dlq', 'show', 'rule:worker', UNREADABLE, '--payload']],
  ['dlq-redrive-plan', () => ['dlq', 'redrive', 'consumer:worker']],
  ['dlq-discard-plan', () => ['dlq', 'discard', 'rule:worker', UNREADABLE.slice(0, 13)]],
  ['messages-resolve-plan', ({ rejected }) => ['messages', 'resolve', 'worker', rejected]],
  ['operations', () => ['operations']],
  ['help', () => ['--help']],
])('the output of %s is the reviewed one', async (name, argv) => {
  const text = await captured(trouble.mailroom, argv(trouble.ids));
  expect(tooWide(text)).toEqual([]);
  await expect(text).toMatchFileSnapshot(`captures/${name}.txt`);
});

test('the status of a Mailroom that is well is the reviewed one', async () => {
  const mailroom = mailroomInMemory([handler], { random: countedBytes() });
  await mailroom.publish();
  await expect(await captured(mailroom, ['status'])).toMatchFileSnapshot('captures/status-well.txt');
});

test('the outputs about scheduled events are the reviewed ones', async () => {
  const mailroom = mailroomInMemory([handler], { random: countedBytes() });
  await mailroom.publish();
  const due = [45, 120, 20].map((minutes) =>
    ThingHappened.create({
      aggregateId: 'thing-7',
      data: { n: N.fine },
      deliverAt: mailroom.clock.now() + minutes * 60_000,
    }),
  );
  const ids = (await mailroom.outbox.commit({ events: due })).map(({ eventId }) => eventId);
  await mailroom.clock.advance(20_000);
  const [scheduled = '', , cancelled = ''] = ids;
  await mailroom.outbox.cancel(cancelled);
  const outputs = {
    'status-scheduled': ['status'],
    'events-list-scheduled': ['events', 'list', '--scheduled'],
    'why-scheduled': ['why', scheduled],
    'why-cancelled-story': ['why', cancelled, '--story'],
  };
  for (const [name, argv] of Object.entries(outputs)) {
    const text = await captured(mailroom, argv);
    expect(tooWide(text)).toEqual([]);
    await expect(text).toMatchFileSnapshot(`captures/${name}.txt`);
  }
});

test('the outputs about an event that blocks its aggregate are the reviewed ones', async () => {
  const mailroom = await orderedMailroom(3, countedBytes());
  const { 6: waits = '' } = await mailroom.commit([4, -1], [5, 1], [6, 1]);
  await mailroom.publish();
  await mailroom.drain();
  const outputs = {
    'why-out-of-order': ['why', waits],
    'order-show': ['order', 'show', 'worker'],
    'dlq-redrive-out-of-order': ['dlq', 'redrive', 'consumer:worker', waits],
  };
  for (const [name, argv] of Object.entries(outputs)) {
    const text = await captured(mailroom, argv);
    expect(tooWide(text)).toEqual([]);
    await expect(text).toMatchFileSnapshot(`captures/${name}.txt`);
  }
});

/** The time of an event id, as `--at` takes it. */
function atOf(eventId: string): string {
  const ms = Number.parseInt(eventId.replace('-', '').slice(0, 12), 16);
  return new Date(ms).toISOString();
}
