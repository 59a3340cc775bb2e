import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { PoisonMessage } from '../../runtime/index.ts';

/** What the bank is asked to do. */
export interface Charge {
  readonly orderId: string;
  readonly customerId: string;
  readonly amountCents: number;
  /** The bank charges once per key, however often it is asked. */
  readonly idempotencyKey: string;
}

/** The bank's decision. Both are results: a refusal is no failure, and asking again would not change it. */
export type ChargeResult =
  | { readonly outcome: 'captured'; readonly chargeId: string }
  | { readonly outcome: 'declined'; readonly reason: string };

/** The bank, as payments sees it. */
export interface Bank {
  /**
   * @throws `BankError` when the bank did not decide: it may have charged or not, so ask again with the same key
   * @throws `PoisonMessage` when the bank does not accept the request for what it is
   */
  charge(charge: Charge, signal: AbortSignal): Promise<ChargeResult>;
}

/** The bank did not decide. */
export class BankError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'BankError';
  }
}

/**
 * The bank behind its Lambda function.
 *
 * @param deps.client - made with `maxAttempts: 1`: a failed call goes back to the queue, and every request that
 * the bank gets is one that payments knows of
 */
export function lambdaBank(deps: { readonly client: LambdaClient; readonly functionName: string }): Bank {
  return {
    charge: async (charge, signal) => {
      const { FunctionError, Payload } = await deps.client.send(
        new InvokeCommand({ FunctionName: deps.functionName, Payload: JSON.stringify(charge) }),
        { abortSignal: signal },
      );
      const text = Payload === undefined ? '' : Buffer.from(Payload).toString('utf8');
      if (FunctionError !== undefined) throw new BankError(`The bank failed: ${text.slice(0, 200)}`);
      return readAnswer(text);
    },
  };
}

function readAnswer(text: string): ChargeResult {
  const answer = JSON.parse(text) as { statusCode: number; body?: { chargeId?: string; message?: string } };
  const { chargeId, message = 'no reason given' } = answer.body ?? {};
  if (answer.statusCode === 200 && chargeId !== undefined) return { outcome: 'captured', chargeId };
  if (answer.statusCode === 422) return { outcome: 'declined', reason: message };
  if (answer.statusCode === 400) throw new PoisonMessage(`The bank refused the request: ${message}`);
  throw new BankError(`The bank answered ${answer.statusCode}: ${message}`);
}
