import { createHash } from 'node:crypto';
import { awsFault } from '../base/aws-errors.ts';
import { errorCode, errorMessage } from '../base/errors.ts';
import {
  type BridgedEvent,
  type BridgeResult,
  bridgedId,
  entryBytes,
  type RefusalCodes,
  refused,
  refusedBy,
} from './bridge-target.ts';
import { accepted, awsAttribute, awsText, checkSize, sendBuilt } from './message-grammar.ts';

/** The codes of SQS, SNS and Kinesis for what is wrong with an entry, or with an address, from their API references. */
const INVALID: RefusalCodes = [
  ['missing', /^InvalidAddress$/],
  ['too-large', /TooLong|TooLarge/],
  [
    'invalid',
    /^InvalidMessageContents|^InvalidParameter|^ParameterValueInvalid|^Validation|^InvalidAttribute/,
  ],
];

/** The result of an entry that AWS refused. A code without a known meaning is `unavailable`. */
export function awsRefusal(code = 'UNKNOWN', message = 'it gave no reason'): BridgeResult {
  const fault = awsFault(code);
  if (fault === 'missing') return refused('missing', code, message);
  if (fault === 'key') return refused('denied', code, message);
  return refusedBy(INVALID, code, message);
}

/**
 * Sends entries in one batch call.
 *
 * @param build - makes an entry's message, as for {@link sendBuilt}
 * @param call - answers with a result for each message, by its index
 */
export function sendBatchOf<M>(
  entries: readonly BridgedEvent[],
  build: (entry: BridgedEvent) => M,
  call: (messages: readonly M[]) => Promise<readonly (BridgeResult | undefined)[]>,
): Promise<readonly BridgeResult[]> {
  return sendBuilt(entries, build, async (messages) => {
    try {
      return await call(messages);
    } catch (error) {
      return messages.map(() => callRefusal(messages.length, errorCode(error), errorMessage(error)));
    }
  });
}

/**
 * The result of an entry whose whole call was refused. That of several entries can be refused for one of them, and each is then sent alone. That of
 * a single one is refused for its address, e.g. a wrong ARN, because the message was checked before: the event is not at fault.
 */
function callRefusal(entries: number, code: string, message: string): BridgeResult {
  const refusal = awsRefusal(code, message);
  const isOfAddress = !refusal.ok && refusal.refusal === 'invalid' && entries === 1;
  return isOfAddress ? refused('missing', code, message) : refusal;
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
export function batchResults({ Successful = [], Failed = [] }: BatchAnswer): BridgeResult[] {
  const results: BridgeResult[] = [];
  for (const { Id, MessageId = '?', SequenceNumber } of Successful) {
    const place = { message: MessageId, ...(SequenceNumber !== undefined && { sequence: SequenceNumber }) };
    results[Number(Id)] = { ok: true, place };
  }
  for (const { Id, Code, Message } of Failed) results[Number(Id)] = awsRefusal(Code, Message);
  return results;
}

const DataType = 'String';

/** The body of a message of SQS or of SNS, and its headers as attributes, whose types count in its size. */
export function bodyAndAttributes(entry: BridgedEvent, maxBytes: number) {
  const headers = Object.entries(entry.headers);
  checkSize(entryBytes(entry) + headers.length * DataType.length, maxBytes);
  const MessageAttributes = Object.fromEntries(
    headers.map(([name, value]) => {
      const StringValue = accepted(`attribute ${name}`, value, awsAttribute);
      return [name, { DataType, StringValue }];
    }),
  );
  return { body: accepted('body', entry.body, awsText), MessageAttributes };
}

/** The fields of a message in a FIFO queue or topic: nothing for a standard one. */
export function fifoFields(address: string, entry: BridgedEvent) {
  if (!address.endsWith('.fifo')) return {};
  return {
    MessageGroupId: keyOf(entry.event.aggregateId, FIFO_KEY),
    MessageDeduplicationId: keyOf(bridgedId(entry), FIFO_KEY),
  };
}

/** SQS and SNS API references: 1 to 128 letters, digits and punctuation marks. */
const FIFO_KEY = /^[\x21-\x7e]{1,128}$/;

/** A key, or its SHA-256 if it is not valid as it is. */
export function keyOf(key: string, valid: RegExp): string {
  return valid.test(key) ? key : createHash('sha256').update(key).digest('hex');
}
