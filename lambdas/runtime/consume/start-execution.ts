import { awsFault } from '../base/aws-errors.ts';
import { errorCode, MailroomError, RetryLater } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { jsonFault } from '../base/json-fault.ts';
import { nothingHappened } from '../base/nothing-happened.ts';
import { poison } from '../base/poison.ts';
import { maskedPath } from '../events/payload-issues.ts';
import {
  type DurableFunctionExecution,
  type ExecutionStarter,
  type StateMachineExecution,
  starterOf,
} from './execution-starter.ts';
import type { LeasedContext } from './handler.ts';

/** An execution that was started for an event. */
export interface StartedExecution {
  /** The name of the execution: `<consumer>_<event id>`, and `_<effect>` unless that has the default name. */
  readonly executionName: string;
  /** Its ARN; `null` for a durable execution that an earlier attempt started with another input. */
  readonly executionArn: string | null;
}

const EFFECT = 'execution';

/**
 * Starts an execution for the event that a leased handler handles, once: a standard execution of a Step Functions state machine, or a durable
 * function. It is an effect of `ctx.once`, and the execution's name comes from its idempotency key, so an attempt after a crash finds the execution
 * that an earlier one started. It returns when the execution has started; its end comes back as an event: docs/recipes/long-work.md.
 *
 * **An execution of the name exists:** it is this event's, so the effect is completed with it, whether it runs, has succeeded or has failed. A failed one is not started
 * again: redrive it in Step Functions. It keeps the input with which it was first started, also if a new version of the handler passes another one.
 *
 * | answer | outcome | the effect |
 * | --- | --- | --- |
 * | started, or already exists | returns the execution | completed |
 * | the input is invalid | rejected (`BAD_EXECUTION_INPUT`) | has not happened |
 * | an Express execution was started | rejected (`EXPRESS_EXECUTION`): nothing prevents another start | has happened |
 * | throttled, or too many open executions | retried after a minute (`RetryLater`), which counts no attempt for a day | has not happened |
 * | any other refusal: no permission, no such state machine or function, a key that cannot be used | retried: a deployment can change that | has not happened |
 * | a timeout, a lost connection, 5xx | retried | may have happened |
 *
 * "Has not happened" holds if the client sent the request once; after its own retries, the first one may have started the execution.
 *
 * Names are free again 90 days after an execution of Step Functions has ended, and after the retention of a durable function, which must be at least that
 * of the inbox (35 days by default). An inbox with a retention above 90 days can start an execution again if an operator redrives an older message whose effect stored no result.
 *
 * @throws `BAD_ARGUMENT` if a member is missing, or an ARN is not that of a state machine, or of a version or an alias of a function
 * @throws `BAD_EXECUTION_NAME` if the name has more than 80 characters (64 for a durable function) or others than letters, digits, `-`, `_` and, for a state machine, `.`: the
 * consumer's name may have 43 (27), less with an effect's name
 * @throws `BAD_EXECUTION_INPUT` if JSON cannot write the input, or it is too large: the message is rejected
 * @throws as `ctx.once`
 *
 * @example
 * ```ts
 * const sfn = new SFN(clientSettings);
 *
 * leased(OrderPlaced, async ({ eventId, correlationId, data }, ctx) => {
 *   const input = { orderId: data.orderId, eventId, correlationId };
 *   await startExecution(ctx, { client: sfn, stateMachineArn, input });
 * });
 * ```
 */
export function startExecution(
  ctx: Pick<LeasedContext, 'once'>,
  execution: StateMachineExecution | DurableFunctionExecution,
): Promise<StartedExecution> {
  const { name = EFFECT } = Object(execution) as typeof execution;
  // Everything else is in the effect: what fails outside of it would be lost if the handler did not await it.
  return ctx.once(name, async (idempotencyKey, abortSignal) => {
    const [starter, start] = refusedFirst(() => {
      requireGiven('startExecution', execution, 'client', 'input');
      const starter = starterOf(execution);
      const key = name === EFFECT ? idempotencyKey.slice(0, -`:${EFFECT}`.length) : idempotencyKey;
      const executionName = nameOf(key, starter);
      return [starter, { executionName, input: jsonOf(execution.input, starter), abortSignal }] as const;
    });
    const { executionName } = start;
    const executionArn = await starter.start(start).catch((error: unknown) => {
      if (errorCode(error) === starter.exists) return starter.arnOf(executionName);
      throw outcomeOf(error, starter);
    });
    if (executionArn?.split(':')[5] === 'express') throw express();
    return { executionName, executionArn };
  });
}

/** Marks the errors of what precedes the call. */
function refusedFirst<T>(prepare: () => T): T {
  try {
    return prepare();
  } catch (error) {
    throw error instanceof Error ? nothingHappened(error) : error;
  }
}

/** The name of an execution: the key of its effect, in characters that the service allows. Ids of events have no underscore, so two keys have two names. */
function nameOf(key: string, { service, nameMax, name }: ExecutionStarter): string {
  const executionName = key.replaceAll(':', '_');
  if (executionName.length <= nameMax && name.test(executionName)) return executionName;
  const problem =
    executionName.length > nameMax
      ? `has ${executionName.length} characters; ${service} allows ${nameMax}`
      : `has a character that ${service} does not allow in names`;
  throw new MailroomError(
    'BAD_EXECUTION_NAME',
    `startExecution: the execution's name "${executionName}" ${problem}. It is made of the consumer's name, the event id and the effect's name: omit \`name\`, or give the ` +
      'effect a shorter one. The name of a consumer cannot change; start the execution in another consumer with a shorter name.',
  );
}

function jsonOf(input: unknown, { service, inputMax }: ExecutionStarter): string {
  const fault = jsonFault(input);
  const json = fault === undefined ? JSON.stringify(input) : '';
  const bytes = Buffer.byteLength(json);
  if (fault === undefined && bytes <= inputMax) return json;
  throw poison(
    'BAD_EXECUTION_INPUT',
    fault === undefined
      ? `startExecution: the input has ${bytes} bytes of JSON; ${service} takes ${inputMax}. Store the large part in S3 and pass its address.`
      : `startExecution: the input cannot be written as JSON: ${maskedPath('input', fault.path)} is ${fault.kind}. ${fault.remedy}`,
  );
}

/** The time until a start is tried again after throttling, milliseconds: the message is not at fault. */
const THROTTLED_MS = 60_000;

/** The error that decides the outcome of the message. */
function outcomeOf(error: unknown, { service, invalid }: ExecutionStarter): unknown {
  const code = errorCode(error);
  const outcome = invalid.test(code)
    ? poison('BAD_EXECUTION_INPUT', `${service} refused the input of the execution (${code}).`, {
        cause: error,
      })
    : awsFault(code) === 'throttled' || code === 'ExecutionLimitExceeded'
      ? new RetryLater(THROTTLED_MS, error)
      : error;
  return isRefusal(error) && outcome instanceof Error ? nothingHappened(outcome) : outcome;
}

/** True for an error of AWS after which its client's only request has had no effect. An earlier request of its retries may have had one. */
function isRefusal(error: unknown): boolean {
  const { $metadata } = Object(error) as {
    readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number };
  };
  const { httpStatusCode: status = 0, attempts } = Object($metadata) as NonNullable<typeof $metadata>;
  return attempts === 1 && status >= 400 && status <= 499 && status !== 408;
}

function express() {
  return poison(
    'EXPRESS_EXECUTION',
    'startExecution has started an Express execution, which has no guard: each attempt would start another one. Use a state machine of the type Standard. ' +
      'The execution of this message runs; discard the message, or redrive it after you have changed the state machine and undone that execution.',
  );
}
