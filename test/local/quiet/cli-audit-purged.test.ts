import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod/mini';
import { defineEvent, transactional } from '../../../lambdas/runtime/index.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { handmadeMailroom, SMALL_SOURCE, type SmallConsumer } from '../support/handmade-mailroom.ts';
import { mailroom } from '../support/mailroom.ts';
import { printedCommand, runPrinted } from '../support/printed-command.ts';
import { smallFunction } from '../support/small-function.ts';

const Sold = defineEvent({
  source: SMALL_SOURCE,
  type: 'Sold',
  version: 1,
  aggregateType: 'Sale',
  schema: z.object({}),
});

/** No other test uses this region. */
const REGION = 'eu-west-3';

let small: Awaited<ReturnType<typeof handmadeMailroom>>;
let mail: SmallConsumer;

beforeAll(async () => {
  small = await handmadeMailroom(inject('endpoint'), REGION, ['mail'], ['Sold']);
  const [consumer] = small.consumers;
  if (consumer === undefined) throw new Error('There is no consumer');
  mail = consumer;
});

afterAll(() => small.remove());

/** Audits without waiting minutes for events that may be on their way, or for the consumer's declaration. */
const audit = (...options: string[]) =>
  mailroom('audit', '--earlier', '--grace', '1s', '--region', REGION, '--stack', small.stack, ...options);

const sell = (count: number) =>
  small.publish(
    ...Array.from({ length: count }, (_, sale) => Sold.create({ aggregateId: `${sale}`, data: {} })),
  );

/** Lets the consumer process what its queue holds. @returns the number of messages */
async function handle(): Promise<number> {
  const handler = smallFunction(small, mail, [transactional(Sold, async () => ({ writes: [] }))]);
  const event = await mail.take();
  expect(await handler(event, lambdaContext())).toEqual({ batchItemFailures: [] });
  return event.Records.length;
}

test('a queue was purged and has new messages: nothing is called accounted for, and what the audit prints repairs it', async () => {
  await sell(5);
  await eventually(async () => {
    expect((await audit('--json')).json().inconclusive).toMatchObject([{ events: 5, queued: 5 }]);
  });
  await mail.purge();
  await sell(3);

  // Once all eight are older than the grace: the three that the queue holds may be any of them. Each command takes the time anew
  // from the Date of an answer, which is known to a second, so the grace is longer here than in the commands that follow.
  await eventually(async () => {
    const { code, json } = await audit('--json', '--grace', '3s');
    expect(json().inconclusive).toEqual([
      { consumer: 'mail', events: 8, queued: 3, missingAtLeast: 5, conclusiveAt: null },
    ]);
    expect(code).toBe(1);
  });
  const doubt = await audit();
  expect(doubt.code).toBe(1);
  expect(doubt.out).toMatch(/^8 inconclusive \(at least 5 missing\)/);
  expect(doubt.out).not.toContain('accounted for');

  // Too early, the suggested command sends nothing and says why.
  const plan = printedCommand(doubt, '--repair');
  const early = await runPrinted(plan, undefined, '--apply', '--reason', 'the queue was purged');
  expect(early.code).toBe(1);
  expect(unwrapped(early.out)).toContain('There is nothing to send. Not sent: 8 inconclusive events to mail');

  expect(await handle()).toBe(3);
  const certain = await eventually(async () => {
    const planned = await runPrinted(plan);
    expect(planned.out).toContain('Would send 5 events to mail.');
    return planned;
  });
  expect(certain.code).toBe(1);
  expect(unwrapped(certain.out)).toContain(
    `Stack ${small.stack}, account 000000000000, region ${REGION} 5 missing `,
  );
  expect(await handle()).toBe(0);

  const sent = await runPrinted(printedCommand(certain, '--apply'), 'the queue was purged');
  expect(sent).toMatchObject({ code: 0, out: expect.stringContaining('Sent 5 events to mail.') });
  expect(await handle()).toBe(5);
  expect(await audit()).toMatchObject({
    code: 0,
    out: expect.stringContaining('every event is accounted for'),
  });
  const log = await mailroom('operations', '--region', REGION, '--stack', small.stack, '--json');
  expect(log.json().operations).toMatchObject([
    {
      command: 'audit --repair',
      reason: 'the queue was purged',
      subject: expect.stringMatching(/^mail: 5 /),
    },
  ]);
});
