import {
  GetQueueAttributesCommand,
  ListMessageMoveTasksCommand,
  StartMessageMoveTaskCommand,
} from '@aws-sdk/client-sqs';
import { EXIT } from '../../cli/terminal/io.ts';
import { errorMessage } from '../../lambdas/runtime/base/errors.ts';
import type { DeployedSystem } from '../deployed-system.ts';
import { notShown, passed, type VerifyCheck } from './check.ts';

/** The bank fails as often as payments tries, and has recovered when it is called again. */
const CUSTOMER = 'fail-5';

const SOURCE = 'consumer:payments';

/** Places an order that the bank fails, and waits until its message is dead. @returns its id, and that of its event */
async function deadOrder(system: DeployedSystem): Promise<{ orderId: string; eventId: string }> {
  const orderId = await system.placeOrder(CUSTOMER);
  return await system.until(`payments rejects order ${orderId}`, async () => {
    const { events, inbox, deadLetters } = await system.read(CUSTOMER);
    const placed = events.find(
      ({ envelope }) => envelope.type === 'OrderPlaced' && envelope.aggregateId === orderId,
    );
    const eventId = placed?.envelope.eventId ?? '';
    return inbox.payments.get(eventId)?.status === 'REJECTED' && deadLetters > 0 && { orderId, eventId };
  });
}

/** Sends a dead letter back with the command, as soon as it is in the queue and no other receiver hides it. */
async function redrive({ mailroom, until }: DeployedSystem, eventId: string): Promise<void> {
  const argv = ['dlq', 'redrive', SOURCE, eventId, '--apply', '--reason', 'the bank has recovered'];
  await until(`mailroom ${argv.join(' ')} exits with 0`, async () => {
    const { code, out, err } = await mailroom(...argv);
    if (code !== EXIT.ok) throw new Error(`it exited with ${code}:\n${out}${err}`);
    return true;
  });
}

/** A dead letter of an outage is processed after a redrive with the command. */
export const redriveCheck: VerifyCheck = {
  name: 'mailroom dlq redrive: a dead letter is processed once its cause is gone',
  run: async (system) => {
    const { orderId, eventId } = await deadOrder(system);
    await redrive(system, eventId);
    await system.confirmed(CUSTOMER, [orderId]);
    return passed(`order ${orderId}: charged once, after 5 failures of the bank`);
  },
};

/** The same after a redrive in the SQS console, which uses this task. */
export const moveTaskCheck: VerifyCheck = {
  name: "SQS's own move task: a dead letter is processed once its cause is gone",
  run: async (system) => {
    const { orderId, eventId } = await deadOrder(system);
    const refusal = await move(system);
    if (refusal !== undefined) {
      await redrive(system, eventId);
      await system.confirmed(CUSTOMER, [orderId]);
      return notShown(refusal);
    }
    await system.confirmed(CUSTOMER, [orderId]);
    return passed(`order ${orderId}: charged once, under the new message id`);
  },
};

/** Moves every dead letter of payments back. @returns why a local engine cannot */
async function move({ sqs, consumer, target, until }: DeployedSystem): Promise<string | undefined> {
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: consumer('payments').deadLetterQueue,
      AttributeNames: ['QueueArn'],
    }),
  );
  const SourceArn = Attributes?.QueueArn;
  try {
    await sqs.send(new StartMessageMoveTaskCommand({ SourceArn }));
  } catch (error) {
    if (target.endpoint === undefined) throw error;
    return `the engine has no move task: ${errorMessage(error)}`;
  }
  await until('the move task is completed', async () => {
    const { Results: [task] = [] } = await sqs.send(new ListMessageMoveTasksCommand({ SourceArn }));
    if (task?.Status === 'FAILED') throw new Error(`The move task failed: ${task.FailureReason}`);
    return task?.Status === 'COMPLETED';
  });
  return undefined;
}
