import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import type { Check, CheckRequest } from '../../lambdas/runtime/consume/check-messages.ts';
import { MailroomError } from '../../lambdas/runtime/errors.ts';
import type { ConsumerEntry } from '../../lambdas/runtime/operations/directory.ts';

/** The most bytes of one invocation that is waited for (Lambda quotas: 6 MB), less room for what is around the bodies. */
const PAYLOAD_MAX_BYTES = 5_500_000;

/**
 * Calls a function of the Mailroom and waits for its answer.
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
  failure.name = 'FUNCTION_FAILED'; // no MailroomError: it was not called wrongly
  throw failure;
}

/**
 * Asks a deployed consumer which messages it could read today; it runs none of them.
 *
 * @returns a check for each body, in order
 * @throws `OLD_CONSUMER` when its function does not know the question
 */
export async function checkBodies(
  client: LambdaClient,
  consumer: Pick<ConsumerEntry, 'name' | 'function'>,
  bodies: readonly string[],
): Promise<Check[]> {
  const checks: Check[] = [];
  for (const batch of batches(bodies)) {
    const request: CheckRequest = { mailroomCheck: { bodies: batch } };
    const answer = await invoke<{ checks?: Check[] } | null>(client, consumer.function, request);
    if (answer?.checks?.length !== batch.length) {
      throw new MailroomError(
        'OLD_CONSUMER',
        `The function of consumer ${consumer.name} (${consumer.function}) does not say what it can read: it was built with an ` +
          'older Mailroom. Deploy it again, then repeat this.',
      );
    }
    checks.push(...answer.checks);
  }
  return checks;
}

/** Bodies by the payload's size; one that is too large for a payload goes alone, and Lambda says so. */
export function* batches(bodies: readonly string[], maxBytes = PAYLOAD_MAX_BYTES): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const body of bodies) {
    const size = Buffer.byteLength(JSON.stringify(body)) + 1;
    if (batch.length > 0 && bytes + size > maxBytes) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(body);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
