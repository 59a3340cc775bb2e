import type {
  BatchWriteItemCommandInput,
  DeleteItemCommandInput,
  ExecuteStatementCommandInput,
  GetItemCommandInput,
  PutItemCommandInput,
  QueryCommandInput,
  ScanCommandInput,
  UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { PutEventsCommandInput, PutEventsCommandOutput } from '@aws-sdk/client-eventbridge';
import type { SendMessageCommandInput } from '@aws-sdk/client-sqs';

/** A call that a probe makes with its role. */
export type ProbeCall =
  | { readonly command: 'BatchWriteItem'; readonly input: BatchWriteItemCommandInput }
  | { readonly command: 'DeleteItem'; readonly input: DeleteItemCommandInput }
  | { readonly command: 'ExecuteStatement'; readonly input: ExecuteStatementCommandInput }
  | { readonly command: 'GetItem'; readonly input: GetItemCommandInput }
  | { readonly command: 'PutItem'; readonly input: PutItemCommandInput }
  | { readonly command: 'Query'; readonly input: QueryCommandInput }
  | { readonly command: 'Scan'; readonly input: ScanCommandInput }
  | { readonly command: 'UpdateItem'; readonly input: UpdateItemCommandInput }
  | { readonly command: 'PutEvents'; readonly input: PutEventsCommandInput }
  | { readonly command: 'SendMessage'; readonly input: SendMessageCommandInput };

/** The outcome of a call: whether IAM admitted it, or why that is unknown. */
export interface ProbeOutcome {
  readonly kind: 'allowed' | 'denied' | 'unknown';
  /** The error; absent if the call succeeded. */
  readonly error?: string;
}

/** Errors that a service returns only to a caller that it has admitted: a condition of the call failed. */
const ADMITTED = ['ConditionalCheckFailedException', 'DuplicateItemException'];

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
