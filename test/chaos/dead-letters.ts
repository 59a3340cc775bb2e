import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
} from '@aws-sdk/client-sqs';
import { type Consumer, QUEUE_OUTPUTS, required } from '../../demo/readings.ts';
import type { OrderSystem } from './order-system.ts';

/** A message in a dead-letter queue. */
export interface DeadLetter {
  /** SQS's id: it is the same as in the queue that SQS moved it from. */
  readonly messageId: string;
  readonly eventId: string;
  /** The queue that SQS moved it from, its ARN; empty if it was sent here directly. */
  readonly movedFrom: string;
}

/** The most messages of one receive (SQS quotas). */
const RECEIVE_MAX = 10;

/** How long a look at the queue may hide what it shows, seconds, if it cannot be shown again at once. */
const LOOK_HIDES_S = 2;

/** Looks at a consumer's dead-letter queue: at ten messages, which is more than a scenario makes. */
export async function deadLetters(system: OrderSystem, consumer: Consumer): Promise<readonly DeadLetter[]> {
  const messages = await receive(system, consumer);
  for (const message of messages) await showAgain(system, consumer, message);
  return messages.map((message) => ({
    messageId: message.MessageId ?? '',
    eventId: eventIdOf(message),
    movedFrom: message.Attributes?.DeadLetterQueueSourceArn ?? '',
  }));
}

/**
 * Sends an event's message back to the queue that it came from, as a redrive does: it gets a new id, and its receives
 * count from 1 again. (This engine has no redrive.)
 *
 * @returns the new id; none when the message is not in the dead-letter queue
 */
export async function redrive(
  system: OrderSystem,
  consumer: Consumer,
  eventId: string,
): Promise<string | undefined> {
  const messages = await receive(system, consumer);
  let newId: string | undefined;
  for (const message of messages) {
    if (newId !== undefined || eventIdOf(message) !== eventId) {
      await showAgain(system, consumer, message);
      continue;
    }
    const QueueUrl = required(system.outputs, `${QUEUE_OUTPUTS[consumer]}QueueUrl`);
    const sent = await system.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: message.Body }));
    await system.sqs.send(new DeleteMessageCommand(inDlq(system, consumer, message)));
    newId = sent.MessageId;
  }
  return newId;
}

async function receive(system: OrderSystem, consumer: Consumer): Promise<readonly Message[]> {
  const { Messages = [] } = await system.sqs.send(
    new ReceiveMessageCommand({
      QueueUrl: dlqUrl(system, consumer),
      MaxNumberOfMessages: RECEIVE_MAX,
      VisibilityTimeout: LOOK_HIDES_S,
      MessageSystemAttributeNames: ['DeadLetterQueueSourceArn'],
    }),
  );
  return Messages;
}

async function showAgain(system: OrderSystem, consumer: Consumer, message: Message): Promise<void> {
  const Entry = { ...inDlq(system, consumer, message), VisibilityTimeout: 0 };
  await system.sqs.send(new ChangeMessageVisibilityCommand(Entry));
}

function inDlq(system: OrderSystem, consumer: Consumer, { ReceiptHandle }: Message) {
  return { QueueUrl: dlqUrl(system, consumer), ReceiptHandle };
}

function dlqUrl({ outputs }: OrderSystem, consumer: Consumer): string {
  return required(outputs, `${QUEUE_OUTPUTS[consumer]}DlqUrl`);
}

function eventIdOf({ Body = '{}' }: Message): string {
  return (JSON.parse(Body) as { detail?: { eventId?: string } }).detail?.eventId ?? '';
}
