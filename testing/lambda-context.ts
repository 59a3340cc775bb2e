import type { Context } from 'aws-lambda';
import { type Clock, systemClock } from '../lambdas/runtime/base/clock.ts';

/** Options of {@link lambdaContext}. */
export interface LambdaContextOptions {
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** The function's timeout in milliseconds from now. @default 30,000 */
  readonly timeoutMs?: number | undefined;
  /** @default 'test' */
  readonly functionName?: string | undefined;
}

/**
 * The second argument of a Lambda handler. Its remaining time decreases with the clock.
 *
 * @example
 * ```ts
 * await handler(event, lambdaContext({ clock, timeoutMs: 10_000 }));
 * ```
 */
export function lambdaContext(options: LambdaContextOptions = {}): Context {
  const { clock = systemClock, timeoutMs = 30_000, functionName = 'test' } = options;
  const deadline = clock.now() + timeoutMs;
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:us-east-1:000000000000:function:${functionName}`,
    memoryLimitInMB: '512',
    awsRequestId: '00000000-0000-4000-8000-000000000000',
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: 'memory',
    getRemainingTimeInMillis: () => Math.max(0, deadline - clock.now()),
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  };
}
