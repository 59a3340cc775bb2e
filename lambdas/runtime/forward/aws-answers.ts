import { createHash } from 'node:crypto';
import { awsFault, isAccessFault } from '../base/aws-errors.ts';
import { errorCode, errorMessage } from '../base/errors.ts';
import {
  type ForwardEntry,
  type ForwardResult,
  type RefusalCodes,
  refused,
  refusedBy,
} from './forward-target.ts';

/** The codes of SQS, SNS and Kinesis for what is wrong with an entry, from their API references. */
const INVALID: RefusalCodes = [
  ['too-large', /TooLong|TooLarge/],
  [
    'invalid',
    /^InvalidMessageContents|^InvalidParameter|^ParameterValueInvalid|^Validation|^InvalidAttribute/,
  ],
];

/** The result of an entry that AWS refused. A code without a known meaning is `unavailable`. */
export function awsRefusal(code = 'UNKNOWN', message = 'it gave no reason'): ForwardResult {
  const fault = awsFault(code);
  if (fault === 'missing') return refused('missing', code, message);
  if (isAccessFault(code) || fault === 'key') return refused('denied', code, message);
  return refusedBy(INVALID, code, message);
}

/**
 * The results of one batch call.
 *
 * @param call - answers with a result for each entry, by its index
 */
export async function awsAnswers(
  entries: readonly ForwardEntry[],
  call: () => Promise<readonly (ForwardResult | undefined)[]>,
): Promise<readonly ForwardResult[]> {
  try {
    const results = await call();
    return entries.map((_, i) => results[i] ?? awsRefusal(undefined, 'its answer does not name the entry'));
  } catch (error) {
    return entries.map(() => awsRefusal(errorCode(error), errorMessage(error)));
  }
}

/** Part of the answer of SQS and of SNS to a batch. */
export interface BatchAnswer {
  readonly Successful?:
    | readonly {
        Id?: string | undefined;
        MessageId?: string | undefined;
        SequenceNumber?: string | undefined;
      }[]
    | undefined;
  readonly Failed?:
    | readonly { Id: string | undefined; Code: string | undefined; Message?: string | undefined }[]
    | undefined;
}

/** The results in an answer of SQS or of SNS, whose entries have their index as their id. */
export function batchResults({ Successful = [], Failed = [] }: BatchAnswer): ForwardResult[] {
  const results: ForwardResult[] = [];
  for (const { Id, MessageId = '?', SequenceNumber } of Successful) {
    const place = { message: MessageId, ...(SequenceNumber !== undefined && { sequence: SequenceNumber }) };
    results[Number(Id)] = { ok: true, place };
  }
  for (const { Id, Code, Message } of Failed) results[Number(Id)] = awsRefusal(Code, Message);
  return results;
}

/** The headers as message attributes of SQS and of SNS. */
export function attributes({ headers }: ForwardEntry) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, StringValue]) => [name, { DataType: 'String', StringValue }]),
  );
}

/** The fields of a message in a FIFO queue or topic: nothing for a standard one. */
export function fifoFields(address: string, { event: { aggregateId, eventId } }: ForwardEntry) {
  if (!address.endsWith('.fifo')) return {};
  // SQS and SNS API references: 1 to 128 letters, digits and punctuation marks.
  const isValid = /^[\x21-\x7e]{1,128}$/.test(aggregateId);
  return {
    MessageGroupId: isValid ? aggregateId : sha256(aggregateId),
    MessageDeduplicationId: eventId,
  };
}

/** A name for a key that is not valid as it is. */
export function sha256(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
