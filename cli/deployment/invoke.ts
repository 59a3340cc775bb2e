import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { SettleAnswer, SettleRequest } from '../../lambdas/runtime/consume/settle-requests.ts';
import { type ConsumerEntry, invokedFunction } from '../../lambdas/runtime/operations/directory.ts';
import type { Check, CheckRequest } from '../../lambdas/runtime/sources/sqs/check-messages.ts';
import { FUNCTION_FAILED } from '../terminal/report-error.ts';

/** The largest payload of a synchronous invocation (Lambda quota: 6 MB), less room for the JSON around the bodies. */
const PAYLOAD_MAX_BYTES = 5_500_000;

/** The most bodies of an invocation: the function reads an object for each that has a large payload, and must answer in its time. */
const BODIES_MAX = 100;

/**
 * Calls a function of the Mailroom and returns its result.
 *
 * @throws an error whose name is the function's own error type, e.g. `BAD_SWEEP_RANGE`, when it failed
 */
export async function invoke<Answer>(
  client: LambdaClient,
  functionName: string,
  request: unknown,
): Promise<Answer> {
  const { FunctionError, Payload } = await client.send(
    new InvokeCommand({ FunctionName: functionName, Payload: JSON.stringify(request) }),
  );
  const text = Payload === undefined ? '' : Buffer.from(Payload).toString('utf8');
  if (FunctionError === undefined) return JSON.parse(text || 'null') as Answer;
  const failure = new Error(`The function ${functionName} failed: ${text.slice(0, 500)}`);
  failure.name = FUNCTION_FAILED;
  throw failure;
}

/**
 * Checks which messages a deployed consumer can read. It runs none of them.
 *
 * @returns a check for each body, in order
 * @throws `OLD_CONSUMER` if its function does not support the check; the function's error if S3 did not read a large payload: nothing is judged
 */
export async function checkBodies(
  client: LambdaClient,
  consumer: Pick<ConsumerEntry, 'name' | 'function' | 'alias'>,
  bodies: readonly string[],
): Promise<Check[]> {
  const checks: Check[] = [];
  const invoked = invokedFunction(consumer.function, consumer.alias);
  for (const batch of batches(bodies)) {
    const request: CheckRequest = { mailroomCheck: { bodies: batch } };
    const answer = await invoke<{ checks?: Check[] } | null>(client, invoked, request);
    if (answer?.checks?.length !== batch.length) {
      throw oldConsumer(consumer.name, invoked, 'check messages');
    }
    checks.push(...answer.checks);
  }
  return checks;
}

/**
 * Has a deployed consumer end a message for an operator.
 *
 * @throws `OLD_CONSUMER` if its function does not support the request
 */
export async function settleByConsumer(
  client: LambdaClient,
  consumer: Pick<ConsumerEntry, 'name' | 'function' | 'alias'>,
  request: SettleRequest,
): Promise<SettleAnswer['settled']> {
  const invoked = invokedFunction(consumer.function, consumer.alias);
  const answer = await invoke<Partial<SettleAnswer> | null>(client, invoked, request);
  if (answer?.settled === undefined) throw oldConsumer(consumer.name, invoked, 'end messages');
  return answer.settled;
}

function oldConsumer(name: string, invoked: string, can: string): MailroomError {
  return new MailroomError(
    'OLD_CONSUMER',
    `The function of consumer ${name} (${invoked}) was built with an older Mailroom and cannot ${can}. ` +
      'Deploy it again, then repeat the command.',
  );
}

/** Splits bodies into payloads. A body that is too large for one is sent alone, and Lambda refuses it. */
export function* batches(bodies: readonly string[], maxBytes = PAYLOAD_MAX_BYTES): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const body of bodies) {
    const size = Buffer.byteLength(JSON.stringify(body)) + 1;
    if (batch.length === BODIES_MAX || (batch.length > 0 && bytes + size > maxBytes)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(body);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
