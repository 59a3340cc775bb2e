import { randomUUID } from 'node:crypto';
import { expect, inject, it } from 'vitest';
import { openDeployment } from '../../../cli/deployment/deployment.ts';
import { createPlans } from '../../../cli/page/server/plans.ts';
import type { Plan, PlanRequest, Run } from '../../../cli/page/server/protocol.ts';
import { capturedIo } from '../../support/captured-io.ts';
import { delivered, die, paymentCaptured, rejectedPayment } from '../support/dead-letters.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import { emails, message } from '../support/order-system.ts';

const CONSUMER = 'notifications';
const source = `consumer:${CONSUMER}` as const;
const reason = 'the provider is back';

const { io } = capturedIo({ env: { AWS_ENDPOINT_URL: inject('endpoint') } });
const deployment = await openDeployment(io, {});
const announced: Run[] = [];
const plans = createPlans({
  deployment,
  allowsChanges: true,
  announce: (run) => announced.push(run),
});

/** Plans until all of it is visible: the sweep, or another test, may hide dead letters for a moment. */
const planned = (request: PlanRequest, count: number): Promise<Plan> =>
  eventually(async () => {
    const plan = await plans.make(request);
    expect(plan.count).toBe(count);
    return plan;
  });

const over = ({ id }: Run): Promise<Run> =>
  eventually(async () => {
    const run = plans.runs().find((one) => one.id === id);
    expect(run?.state).not.toBe('running');
    return run as Run;
  });

// biome-ignore lint/suspicious/noExplicitAny: each command prints a shape of its own
const documentOf = (of: Run | Plan): any => of.document;

it('a plan of one cause is applied to exactly its dead letters; one that changed in between is left alone', async () => {
  const cause = `${CONSUMER} ATTEMPTS_EXHAUSTED: BankError ${randomUUID()}`;
  const [first, second, other] = [
    await rejectedPayment(CONSUMER, cause),
    await rejectedPayment(CONSUMER, cause),
    await rejectedPayment(CONSUMER, `${cause}, too`),
  ];
  const plan = await planned({ kind: 'redrive', source, cause }, 2);
  expect(
    documentOf(plan)
      .deadLetters.map(({ id }: { id: string }) => id)
      .sort(),
  ).toEqual([first.id, second.id].sort());
  const resolve = [
    'messages',
    'resolve',
    CONSUMER,
    second.envelope.eventId,
    '--apply',
    '--reason',
    'by phone',
  ];
  expect((await mailroom(...resolve)).code).toBe(0);

  const run = plans.apply(plan.id, { reason, confirmation: '2' });
  const done = await over(run);
  expect(done, JSON.stringify(done)).toMatchObject({ state: 'done', exitCode: 1 });
  expect(announced.map(({ progress }) => progress)).toContain('Step 1 of 1: 1 of 1 redriven');
  const outcomes = documentOf(done).deadLetters.map(({ id, outcome }: { id: string; outcome: string }) => [
    id,
    outcome,
  ]);
  expect(Object.fromEntries(outcomes)).toEqual({ [first.id]: 'processed', [second.id]: 'changed' });
  expect(await emails(first.envelope.aggregateId)).toHaveLength(1);
  expect(await emails(second.envelope.aggregateId)).toHaveLength(0);
  expect(await message(CONSUMER, other.envelope.eventId)).toMatchObject({ status: 'REJECTED' });

  const discard = await planned({ kind: 'discard', source, ids: [second.id, other.id] }, 2);
  expect(() => plans.apply(discard.id, { reason, confirmation: '2' })).toThrowError(/must be/);
  const { stack } = deployment.directory.mailroom;
  const discarded = await over(plans.apply(discard.id, { reason, confirmation: stack }));
  expect(discarded, JSON.stringify(discarded)).toMatchObject({ state: 'done', exitCode: 0 });
  expect(await message(CONSUMER, other.envelope.eventId)).toMatchObject({ status: 'DISCARDED' });
});

it('an edited payload is a new event, which its consumer runs once and no other consumer receives', async () => {
  const envelope = await paymentCaptured();
  const { eventId, aggregateId } = envelope;
  const wrong = { ...envelope, data: { ...(envelope.data as object), amountCents: 'much' } };
  const id = await die(source, delivered(wrong));
  const data = { ...(envelope.data as object), amountCents: 1_350 };

  const refused = await planned({ kind: 'resend', source, id, data: { ...data, amountCents: 'more' } }, 0);
  expect(documentOf(refused)).toMatchObject({ verdict: 'fails', code: 'INVALID_PAYLOAD' });
  const plan = await planned({ kind: 'resend', source, id, data }, 1);
  const again = await planned({ kind: 'resend', source, id, data }, 1);
  expect(plan.confirmation).toBe(CONSUMER);
  const { newEventId } = documentOf(plan);
  const done = await over(plans.apply(plan.id, { reason, confirmation: CONSUMER }));
  const sent = ['processed', 'waiting']; // on a busy machine, its consumer may take longer than the run waits
  expect(sent, JSON.stringify(done)).toContain(documentOf(done).outcome);
  await eventually(async () =>
    expect(await message(CONSUMER, newEventId)).toMatchObject({ status: 'PROCESSED' }),
  );

  // The second plan of the same data expects a verdict that no longer holds.
  const repeated = await over(plans.apply(again.id, { reason, confirmation: CONSUMER }));
  expect(documentOf(repeated)).toMatchObject({ verdict: 'handled', outcome: 'changed' });
  expect(await emails(aggregateId)).toHaveLength(1);
  expect(await message('order-status', newEventId)).toBeUndefined();
  expect(await message(CONSUMER, eventId)).toMatchObject({
    status: 'DISCARDED',
    replacedBy: newEventId,
  });

  const why = await mailroom('why', newEventId, '--json');
  expect(why.code, why.err).toBe(0);
  expect(why.json().verdict.text).toContain(eventId);
  const log = await mailroom('operations', '--json');
  expect(log.json().operations).toContainEqual(
    expect.objectContaining({
      command: 'dlq resend',
      subject: `${source}: ${eventId} as ${newEventId}`,
      reason,
    }),
  );
  const audit = await mailroom('audit', '--json');
  expect(audit.out).not.toContain(newEventId);
  expect(audit.out).not.toContain(eventId);

  const discard = await planned({ kind: 'discard', source, ids: [id] }, 1);
  const { stack } = deployment.directory.mailroom;
  await over(plans.apply(discard.id, { reason, confirmation: stack }));
  await eventually(async () => expect((await mailroom('dlq', 'show', source, id)).code).toBe(3));
});
