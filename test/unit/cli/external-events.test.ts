import { expect, test } from 'vitest';
import { z } from 'zod/mini';
import { auditFindings, auditText } from '../../../cli/reports/audit/audit-text.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { type Handler, leased } from '../../../lambdas/runtime/consume/handler.ts';
import { externalEvent } from '../../../lambdas/runtime/events/external-event.ts';
import { externalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const Charged = externalEvent({
  source: 'stripe',
  type: 'charge.succeeded',
  id: 'id',
  schema: z.object({ id: z.string() }),
});
const eventId = externalEventId(Charged, ['evt_1']);
const fine = leased(Charged, async () => {});
const poison = leased(Charged, async () => {
  throw new PoisonMessage('currency is not supported');
});

/** A Mailroom whose consumer has an external event, and has received it. */
async function received(handler: Handler) {
  const made = mailroomInMemory([handler]);
  made.queue.send({ id: 'evt_1' });
  await made.drain();
  const consumers = [{ ...worker, events: [ThingHappened, Charged] }];
  return { ...made, directory: { ...directory, consumers } };
}

const unwrapped = (text: string) => text.replace(/\s+/g, ' ');

test.each(['evt_1', eventId])(
  'why %s finds the message of an external event and claims nothing about an outbox',
  async (id) => {
    const { code, out } = await runInMemory(await received(fine), ['why', id, '--story']);
    expect(code).toBe(0);
    expect(unwrapped(out)).toContain(
      `charge.succeeded ${eventId}: processed by worker. Mailroom does not know which consumers an external event should reach.`,
    );
    expect(out).toContain('external event');
    expect(out).not.toMatch(/published|committed|outbox row|audit/);
  },
);

test.each(['["eu",7]', '["eu","7"]'])(
  'why %s finds an event with two id fields, whichever form its publisher wrote the number in',
  async (typed) => {
    for (const number of [7, '7']) {
      const Scanned = externalEvent({
        source: 'dock',
        type: 'scanned',
        id: ['site', 'parcel'],
        schema: z.object({ site: z.string(), parcel: z.union([z.string(), z.number()]) }),
      });
      const made = mailroomInMemory([leased(Scanned, async () => {})]);
      made.queue.send({ site: 'eu', parcel: number });
      await made.drain();
      const consumers = [{ ...worker, events: [Scanned] }];
      const { code, out } = await runInMemory({ ...made, directory: { ...directory, consumers } }, [
        'why',
        typed,
      ]);
      expect(code).toBe(0);
      expect(out).toContain(externalEventId(Scanned, ['eu', number]));
    }
  },
);

test('why names the dead letter of a rejected external event, and a redrive of it', async () => {
  const mailroom = await received(poison);
  const [deadLetter] = mailroom.queue.deadLetters();
  const { code, out } = await runInMemory(mailroom, ['why', 'evt_1']);
  expect(code).toBe(1);
  expect(unwrapped(out)).toContain('POISON_MESSAGE: currency is not supported');
  expect(out).toContain(`dlq redrive consumer:worker ${deadLetter?.messageId}`);
});

test('the dead letters of an external event are listed with its event id and type', async () => {
  const mailroom = await received(poison);
  const { out } = await runInMemory(mailroom, ['dlq', 'list', 'consumer:worker', '--json']);
  expect(JSON.stringify(JSON.parse(out))).toContain(eventId);
  expect(out).toContain('charge.succeeded');
});

test('a message of an external event can be resolved by its event id', async () => {
  const mailroom = await received(poison);
  const { code, out } = await runInMemory(mailroom, [
    'messages',
    'resolve',
    'worker',
    eventId,
    '--reason',
    'done by hand',
  ]);
  expect(code).toBe(0);
  expect(out).toContain(eventId);
});

test('logs names the function of the consumer, and no relay', async () => {
  const { code, out } = await runInMemory(await received(fine), ['logs', eventId]);
  expect(code).toBe(0);
  expect(out).toContain('worker:');
  expect(out).not.toContain('relay');
});

test('the audit names the external events that it does not cover, expects no row of them, and finds no drift in their rule', async () => {
  const rig = auditRig([
    consumerEntry('payments'),
    consumerEntry('webhooks', { events: [Charged], rule: undefined, undeliveredQueue: undefined }),
    consumerEntry('mixed', { events: [{ source: 'orders', type: 'OrderPlaced' }, Charged] }),
  ]);
  rig.rules.set('mixed-rule', {
    ...rig.rules.get('payments-rule'),
    targets: [
      { id: 'Queue', arn: 'arn:aws:sqs:eu-west-1:123456789012:mixed-queue', deadLetterQueue: undefined },
    ],
  } as never);
  const { eventId: placed } = await rig.event(20 * MINUTE_MS);
  await rig.event(20 * MINUTE_MS, { source: Charged.source, type: Charged.type });
  for (const name of ['payments', 'mixed']) await rig.inbox(name, placed, 'PROCESSED');
  const report = await rig.run();
  expect(auditFindings(report)).toEqual([]);
  const events = [{ source: 'stripe', type: 'charge.succeeded' }];
  expect(report.notAudited).toEqual([
    { consumer: 'webhooks', events, because: 'external' },
    { consumer: 'mixed', events, because: 'external' },
  ]);
  const recheck = { at: 0, command: '' };
  const _text = auditText({ report }, { repair: '', apply: '', doctor: '', restore: [], recheck });
});
