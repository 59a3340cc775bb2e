import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { nothingHappened, PoisonMessage, RetryLater } from '../../runtime/index.ts';

/** A request to charge a customer. */
export interface Charge {
  readonly orderId: string;
  readonly customerId: string;
  readonly amountCents: number;
  /** The bank charges once per key, however often it is called. */
  readonly idempotencyKey: string;
}

/** A request to refund a charge. */
export interface Refund extends Charge {
  readonly chargeId: string;
}

/** The bank's decision. Both are results: a refusal is not a failure, and a retry would not change it. */
export type ChargeResult =
  | { readonly outcome: 'captured'; readonly chargeId: string }
  | { readonly outcome: 'declined'; readonly reason: string };

/** The bank, as payments uses it. */
export interface Bank {
  /**
   * @throws `BankError` if the bank did not decide: it may have charged or not, so retry with the same key
   * @throws `RetryLater` if the customer has not approved the charge: the bank charges nothing unless it is asked again
   * @throws `PoisonMessage` if the bank refuses the request itself
   */
  charge(charge: Charge, signal: AbortSignal): Promise<ChargeResult>;
  /**
   * @throws `BankError` if the bank did not decide: it may have refunded or not, so retry with the same key
   * @throws `PoisonMessage` if the charge does not exist or was already refunded
   */
  refund(refund: Refund, signal: AbortSignal): Promise<{ readonly refundId: string }>;
}

/** The bank did not decide. */
export class BankError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'BankError';
  }
}

/**
 * Calls the bank's Lambda function.
 *
 * @param deps.client - created with `maxAttempts: 1`: a failed call returns to the queue, so payments has a record of every request
 * that the bank receives
 */
export function lambdaBank(deps: { readonly client: LambdaClient; readonly functionName: string }): Bank {
  async function ask(request: object, signal: AbortSignal): Promise<BankResponse> {
    const { FunctionError, Payload } = await deps.client.send(
      new InvokeCommand({ FunctionName: deps.functionName, Payload: JSON.stringify(request) }),
      { abortSignal: signal },
    );
    const text = Payload === undefined ? '' : Buffer.from(Payload).toString('utf8');
    if (FunctionError !== undefined) throw new BankError(`The bank failed: ${text.slice(0, 200)}`);
    return JSON.parse(text) as BankResponse;
  }

  return {
    charge: async (charge, signal) => {
      const answer = await ask({ operation: 'charge', ...charge }, signal);
      const { chargeId } = answer.body ?? {};
      if (answer.statusCode === 200 && chargeId !== undefined) return { outcome: 'captured', chargeId };
      if (answer.statusCode === 422) return { outcome: 'declined', reason: messageOf(answer) };
      throw undecided(answer);
    },
    refund: async (refund, signal) => {
      const answer = await ask({ operation: 'refund', ...refund }, signal);
      const { refundId } = answer.body ?? {};
      if (answer.statusCode === 200 && refundId !== undefined) return { refundId };
      throw undecided(answer);
    },
  };
}

interface BankResponse {
  readonly statusCode: number;
  readonly body?: {
    readonly chargeId?: string;
    readonly refundId?: string;
    readonly message?: string;
    readonly retryAfterSeconds?: number;
  };
}

/** A request that the bank will never accept is poison; any other response is worth a retry, at a time that the bank may set. */
function undecided(answer: BankResponse): Error {
  const message = messageOf(answer);
  if (answer.statusCode === 400)
    return nothingHappened(new PoisonMessage(`The bank refused the request: ${message}`));
  if (answer.statusCode === 202)
    return nothingHappened(new RetryLater({ seconds: answer.body?.retryAfterSeconds }, message));
  return new BankError(`The bank answered ${answer.statusCode}: ${message}`);
}

function messageOf({ body }: BankResponse): string {
  return body?.message ?? 'no reason given';
}
