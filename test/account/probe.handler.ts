import {
  type BatchWriteItemCommandInput,
  type DeleteItemCommandInput,
  DynamoDB,
  type ExecuteStatementCommandInput,
  type GetItemCommandInput,
  type PutItemCommandInput,
  type QueryCommandInput,
  type ScanCommandInput,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import {
  EventBridge,
  type PutEventsCommandInput,
  type PutEventsCommandOutput,
} from '@aws-sdk/client-eventbridge';
import { type SendMessageCommandInput, SQS } from '@aws-sdk/client-sqs';

const dynamo = new DynamoDB({});
const events = new EventBridge({});
const sqs = new SQS({ useQueueUrlAsEndpoint: false });

/** The calls that a probe can make with its role, by the names of their IAM actions. */
const CALLS = {
  BatchWriteItem: (input: BatchWriteItemCommandInput) => dynamo.batchWriteItem(input),
  DeleteItem: (input: DeleteItemCommandInput) => dynamo.deleteItem(input),
  ExecuteStatement: (input: ExecuteStatementCommandInput) => dynamo.executeStatement(input),
  GetItem: (input: GetItemCommandInput) => dynamo.getItem(input),
  PutItem: (input: PutItemCommandInput) => dynamo.putItem(input),
  Query: (input: QueryCommandInput) => dynamo.query(input),
  Scan: (input: ScanCommandInput) => dynamo.scan(input),
  UpdateItem: (input: UpdateItemCommandInput) => dynamo.updateItem(input),
  PutEvents: (input: PutEventsCommandInput) => events.putEvents(input).then(acceptedEntries),
  SendMessage: (input: SendMessageCommandInput) => sqs.sendMessage(input),
};

type Calls = typeof CALLS;

/** A call that a probe makes with its role. */
export type ProbeCall = {
  [Command in keyof Calls]: { readonly command: Command; readonly input: Parameters<Calls[Command]>[0] };
}[keyof Calls];

/** The outcome of a call: whether IAM admitted it, or why that is unknown. */
export interface ProbeOutcome {
  readonly kind: 'allowed' | 'denied' | 'unknown';
  /** The error; absent if the call succeeded. */
  readonly error?: string;
}

/** Errors that a service returns only to a caller that it has admitted: a condition of the call failed. */
const ADMITTED = ['ConditionalCheckFailedException', 'DuplicateItemException'];

/** Makes the calls, one after the other, with the role of this function. */
export async function handler({ calls }: { readonly calls: readonly ProbeCall[] }): Promise<ProbeOutcome[]> {
  const outcomes: ProbeOutcome[] = [];
  for (const { command, input } of calls) {
    const send = CALLS[command] as (input: unknown) => Promise<unknown>;
    outcomes.push(await outcomeOf(() => send(input)));
  }
  return outcomes;
}

/** Throws the error of an entry that the bus refused: `PutEvents` succeeds although it refuses every entry. */
export function acceptedEntries({ Entries = [] }: Pick<PutEventsCommandOutput, 'Entries'>): void {
  const refused = Entries.find(({ ErrorCode }) => ErrorCode !== undefined);
  if (refused === undefined) return;
  throw Object.assign(new Error(refused.ErrorMessage), { name: refused.ErrorCode });
}

/** Runs a call, and judges by its error whether IAM denied it. */
export async function outcomeOf(send: () => Promise<unknown>): Promise<ProbeOutcome> {
  try {
    await send();
    return { kind: 'allowed' };
  } catch (error) {
    const { name = 'Error', message = '' } = error as Partial<Error>;
    const text = `${name}: ${message}`;
    // AccessDeniedException; of SQS, AccessDenied; of an entry for a bus, NotAuthorizedForSourceException.
    if (/^(AccessDenied|NotAuthorized)/.test(name)) return { kind: 'denied', error: text };
    return { kind: ADMITTED.includes(name) ? 'allowed' : 'unknown', error: text };
  }
}
