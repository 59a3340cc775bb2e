import { type Consumer, QUEUE_OUTPUTS, required } from '../../demo/readings.ts';
import { INBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import type { Act, Call } from './fault-proxy.ts';
import type { OrderSystem } from './order-system.ts';
import type { Stage } from './stage.ts';

/** How one worker tried to claim a message, as the proxy saw it. */
export interface ClaimTry {
  readonly eventId: string;
  /** SQS's id: each copy of an event has its own. */
  readonly messageId: string;
  /** How often SQS had handed out that message by then. */
  readonly receives: number;
  /** The worker's process. */
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The token of the claim. */
  readonly fence: string;
  /** Until when it was to hold. */
  readonly leaseUntil: number;
  /** When the worker's function is stopped at the latest. */
  readonly endsBy: number;
  readonly granted: boolean;
}

/**
 * Notes every claim that a consumer tries, from now on.
 *
 * @param act - what else is done with the call
 * @returns the tries so far, the oldest first; it grows
 */
export function watchClaims(
  { system, fault }: Stage,
  consumer: Consumer,
  act: Act = (_call, forward) => forward(),
): readonly ClaimTry[] {
  const tries: ClaimTry[] = [];
  fault({ from: consumer, action: 'UpdateItem', where: isClaim }, async (call, forward) => {
    const { Key, ExpressionAttributeValues: values = {} } = call.body as UpdateInput;
    const messageId = values[':messageId']?.S ?? '';
    const seen = {
      eventId: (Key?.PK?.S ?? '').slice(`${INBOX_PREFIX}${consumer}#`.length),
      messageId,
      receives: await receivesOf(system, consumer, messageId),
      pid: call.pid,
      at: Date.now(),
      fence: values[':fence']?.S ?? '',
      leaseUntil: Number(values[':leaseUntil']?.N),
      endsBy: Number(values[':endsBy']?.N),
    };
    const answer = await act(call, forward);
    tries.push({ ...seen, granted: answer?.status === 200 });
    return answer;
  });
  return tries;
}

/** How often SQS has handed out a message that is in a consumer's queue. */
export async function receivesOf(
  system: OrderSystem,
  consumer: Consumer,
  messageId: string,
): Promise<number> {
  const found = (await messagesOf(system, consumer)).find(({ MessageId }) => MessageId === messageId);
  return found?.ReceiveCount ?? 0;
}

/** Whether a call extends a lease and does nothing else: the heartbeat's. */
export function isRenew({ body }: Call): boolean {
  return (body as UpdateInput).UpdateExpression === 'SET leaseUntil = :leaseUntil';
}

/** The fence of the claim under which a transaction sets a message PROCESSED; none when it does not. */
export function commitFence({ body }: Call): string | undefined {
  const updates = ((body as TransactInput).TransactItems ?? []).map(({ Update }) => Update);
  const commit = updates.find((update) => update?.UpdateExpression?.includes('commitId = :commitId'));
  return commit?.ExpressionAttributeValues?.[':heldFence']?.S;
}

interface QueuedMessage {
  readonly MessageId: string;
  /** How often SQS has handed it out. */
  readonly ReceiveCount: number;
}

/** The messages in a consumer's queue, hidden ones too. They are looked at, and not received. */
export async function messagesOf(
  { endpoint, outputs }: OrderSystem,
  consumer: Consumer,
): Promise<readonly QueuedMessage[]> {
  const query = new URLSearchParams({ QueueUrl: required(outputs, `${QUEUE_OUTPUTS[consumer]}QueueUrl`) });
  const response = await fetch(`${endpoint}/_ministack/sqs/messages?${query}`);
  const { messages } = (await response.json()) as { messages: ByAccount };
  return Object.values(messages)
    .flatMap((byRegion) => Object.values(byRegion))
    .flatMap((byQueue) => Object.values(byQueue))
    .flat();
}

type ByAccount = Readonly<Record<string, Record<string, Record<string, readonly QueuedMessage[]>>>>;

/** An attribute as it goes over the wire. */
interface Attribute {
  readonly S?: string;
  readonly N?: string;
}

interface UpdateInput {
  readonly Key?: { readonly PK?: Attribute };
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeValues?: Readonly<Record<string, Attribute>>;
}

interface TransactInput {
  readonly TransactItems?: readonly { readonly Update?: UpdateInput }[];
}

/** Every claim says when it was made, and nothing else does. */
function isClaim({ body }: Call): boolean {
  return (body as UpdateInput).UpdateExpression?.includes('claimedAt = :claimedAt') ?? false;
}
