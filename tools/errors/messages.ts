import { section } from './explanation.ts';

/** Reasons for which a consumer rejects a message. */
export const REJECTIONS = section({
  title: 'Rejected messages',
  text: `The consumer rejects the message: its handler does not run again, its inbox row is REJECTED with this code as the \`reason\`, and SQS moves the message
to the dead-letter queue. Other messages are not affected. \`npx cdk-mailroom why <id>\` shows the row; [redrive](cli.md#dlq-redrive) the message once the cause is fixed, unless the entry below warns against it.`,
  codes: {
    ATTEMPTS_EXHAUSTED: {
      cause: 'All attempts that `retry.attempts` allows failed. The message quotes the last error.',
      result: 'The message is rejected.',
      action: 'Fix the quoted error, then redrive.',
    },
    BAD_EXTERNAL_ID: {
      cause:
        'A field in the `id` of an external event is missing or not an integer or a string of 1 to 2,048 characters; or the definition has no `id`, and the message none from EventBridge, CloudEvents or its broker.',
      result: 'The message is rejected: without an id, duplicates cannot be recognized.',
      action: 'Correct `id` in `externalEvent`, deploy and redrive, or discard the message.',
    },
    BAD_EXTERNAL_TIME: {
      cause:
        'The `time` field of an external event is missing, or neither ISO 8601 text with a time zone nor a number of seconds, milliseconds, microseconds or nanoseconds since 1970.',
      result: 'The message is rejected.',
      action: 'Correct `time` in `externalEvent`, deploy and redrive, or discard the message.',
    },
    EFFECT_RESULT_NOT_STORABLE: {
      cause:
        'The function in `ctx.once` returned something that JSON would [empty or replace](data-model.md#values-in-json), or has more than 4,096 bytes of JSON.',
      result:
        'The effect has happened without a stored result. The message is rejected, because each retry would repeat the effect.',
      action:
        'Return only the part that the handler needs, deploy, and redrive: the effect repeats under the same idempotency key. If the provider ignores keys, finish by hand and resolve it.',
    },
    EFFECT_UNREADABLE: {
      cause: 'The entry of an effect in the inbox row was edited by hand, or lacks what Mailroom writes.',
      result: 'The effect was not started, and the message is rejected.',
      action:
        'Ask the provider whether the effect happened. Finish the work by hand, then resolve the message.',
    },
    EVENT_TOO_OLD: {
      cause:
        "The event has no inbox row, which may have expired: it is older than the inbox retention (from the consumer's first start), or the consumer's name.",
      result:
        "The message is rejected: it may have been processed before. A strict order does not pass over its number, even with `onReject: 'skip'`.",
      action:
        'If it was not, run [`messages allow`](cli.md#messages-allow) and redrive. Otherwise, discard it. A new consumer name runs everything.',
    },
    FORWARD_REJECTED: {
      cause:
        'The target of a bridge does not accept the event: it is too large, or its content, subject or routing key is invalid there. The message names the target and its reason.',
      result: 'The message is rejected: a retry would be refused again. The target does not have the event.',
      action:
        'Raise the limit of the target and redrive, or discard the message. [Forward events](queues.md) lists the limits.',
    },
    NO_EVENT: {
      cause:
        'The message is healthy and carries no event, such as `s3:TestEvent`, which S3 sends when its notifications are set up.',
      result:
        'A consumer acknowledges it without a row, and counts `MessagesSkipped`. Only an earlier release left it as a dead letter.',
      action: 'Discard the dead letter.',
    },
    OUT_OF_ORDER: {
      cause:
        'In a strict order, the event before this one was not applied until the last receive; the message names its sequence. Or another event was applied during this run.',
      result: 'The message is rejected. A refused `ctx.commit` only shows it again, and counts no attempt.',
      action: 'Redrive or skip the missing event, then redrive this one. Do not catch it from `ctx.commit`.',
    },
    POISON_MESSAGE: {
      cause: 'The handler threw a `PoisonMessage` without its own code: no retry can process the message.',
      result: "The message is rejected with the handler's text.",
      action:
        'Read the text. Correct the data with [`dlq resend`](cli.md#dlq-resend), deploy a handler that accepts it and redrive, or discard it.',
    },
    SEQUENCE_REPEATED: {
      cause: 'An ordered consumer has applied another event of the same aggregate with the same sequence.',
      result:
        'The message is rejected: its event was not applied. After the next number is applied, a repeated number is superseded without this error.',
      action:
        'Correct the publisher: it must raise the sequence in the transaction that writes the event. Publish the change again under a new number, then discard the message.',
    },
    TOO_MANY_EFFECTS: {
      cause: 'The message would have more than 64 effects, the most that its row stores.',
      result: 'It is rejected. The effect, or every item of `ctx.onceEach`, was not started.',
      action:
        'If `npx cdk-mailroom why <id>` lists effects, do not redrive it: new events would repeat them under other keys. Ask the providers, finish by hand, then [resolve it](cli.md#messages-resolve) with `--effects-checked`. For later messages, publish an event for each item. Keep effect names stable.',
    },
    TOO_MANY_HOPS: {
      cause: 'An event would be number 34 in a chain of events that cause each other, where 33 are allowed.',
      result: 'Nothing was committed, and the message that would have caused it is rejected.',
      action:
        "Inspect the chain with `npx cdk-mailroom why <id> --story`: services probably answer each other's events endlessly. To continue a chain on purpose, give the event a new `correlationId`.",
    },
    UNKNOWN_EVENT_TYPE: {
      cause: 'The consumer subscribes to an event for which its function has no handler.',
      result: 'The message is rejected.',
      action:
        'Deploy a handler and redrive, or remove the event from the subscription and discard the message.',
    },
    UNKNOWN_EVENT_VERSION: {
      cause:
        "The event is newer than the consumer's definition, or older and the definition has no `upcast`.",
      result: 'The message is rejected.',
      action: 'Deploy the newer definition or an `upcast`, then redrive. Deploy consumers before producers.',
    },
    UNREADABLE_MESSAGE: {
      cause:
        'The body is not JSON, or is neither a Mailroom event nor an external event of this consumer. Or an ordered consumer cannot use the sequence or the names of the event.',
      result:
        'The message is rejected under a digest of its body if it has no event id, otherwise under that.',
      action:
        'Find the sender with `npx cdk-mailroom dlq show <source> <id>`, correct it, and discard the message.',
    },
    WRONG_SOURCE: {
      cause: 'The event came from a service other than the one that its definition names as `source`.',
      result: 'The message is rejected.',
      action:
        'If that service owns the event now, correct `source`, deploy and redrive. Otherwise, find the sender and discard the message.',
    },
    WRONG_TYPE: {
      cause:
        'EventBridge delivered the message under another type than its envelope states, which Mailroom never writes.',
      result: 'The message is rejected.',
      action: 'Find out who sent it before you do anything else, because it may be forged. Then discard it.',
    },
  },
});

/** Reasons for which a message is not processed in this attempt. */
export const ATTEMPTS = section({
  title: 'Messages that wait or are retried',
  text: `The message was not processed in this attempt. It stays in the queue and is received again; usually there is nothing to do.`,
  codes: {
    ALREADY_PROCESSED: {
      cause: 'The handler threw `AlreadyProcessed`: the work was done elsewhere.',
      result: 'The message is recorded as processed and deleted from the queue.',
      action: 'Nothing.',
    },
    BATCH_RETRIED: {
      cause: 'A message of a batch of Kinesis, Kafka or RabbitMQ is not done. The log has its reason.',
      result: 'Lambda repeats the batch. The handlers of messages that are done do not run again.',
      action:
        'Nothing. To repeat fewer messages, set `ReportBatchItemFailures` in the event source mapping and `partialFailures`: see [Lambda functions](sources.md#lambda-functions).',
    },
    EFFECT_IN_PROGRESS: {
      cause: 'An effect of the message may still be running in a function that has lost its lease.',
      result:
        'The message waits until that function has certainly stopped. This is not counted as an attempt.',
      action: 'Nothing. Do not catch this error in a handler.',
    },
    FENCE_LOST: {
      cause:
        'This worker lost its message: its lease passed and another worker claimed it, or an operator settled it.',
      result: 'Its writes were refused, so nothing was duplicated in DynamoDB. The other worker continues.',
      action:
        'Do not catch this error in a handler. If it happens often, find what blocks the event loop, or raise the lease.',
    },
    FORWARD_FAILED: {
      cause:
        'The target of a bridge does not exist, has a wrong address, denied access, was unreachable, or did not answer in time. The message names the target and its reason.',
      result:
        'The message is retried, and rejected once its attempts are exhausted. If only the answer was lost, the target has the event.',
      action:
        'Create the target, correct its address, or grant the function of the consumer the right to send.',
    },
    FUNCTION_DIED: {
      cause:
        'The function crashed, ran out of memory or was stopped at its timeout before the handler ended.',
      result:
        'Another attempt takes the message over after the lease. After two such claims the message runs alone, so that it cannot take others down.',
      action: 'Look for the crash in the logs. Raise the memory or the timeout, or shorten the handler.',
    },
    HANDLER_ENDED: {
      cause:
        'The handler returned before a call of `ctx.once` or `ctx.commit` that it had started without `await`.',
      result: 'The late call did nothing. The message was settled without it.',
      action:
        'Await everything that the handler starts. See [Find un-awaited calls](testing.md#find-un-awaited-calls).',
    },
    LEASED: {
      cause:
        'Another worker holds the message, or held it when its function was stopped. The metric `MessagesLeased` counts this; no line is logged.',
      result: 'The message becomes visible again after the lease. No attempt is counted.',
      action: 'Nothing.',
    },
    NO_TIME_LEFT: {
      cause: 'The function had less than 2 seconds left when it would have started the message.',
      result: 'The message goes back to the queue. No attempt is counted.',
      action: 'If it happens often, lower the batch size or raise the timeout of the function.',
    },
    OUT_OF_TIME: {
      cause:
        'A handler, or the watch of dead-letter queues in the sweep, was still running when the time of its function was up.',
      result:
        'The message is retried; the attempt counts only if the message ran alone. The next sweep repeats the watch.',
      action: 'Shorten the handler, pass its `signal` to slow calls, or raise the timeout of the function.',
    },
    PUT_BACK: {
      cause:
        'Another message of the batch must run alone, because its last attempts may have killed their function. Or a [source](sources.md) delivered the message before its next attempt was due.',
      result: 'The message goes back to the queue at once, or waits until it is due. No attempt is counted.',
      action: 'Nothing. Fix the message that kills its function.',
    },
    RETRY_LATER: {
      cause: 'The handler threw `RetryLater`.',
      result:
        'The message is retried after the delay that the handler chose, or later after ten waits. For a day, waits count no attempt; then each does.',
      action:
        'Nothing, unless the receives or the attempts run out: then choose longer delays, or ask the provider for a higher limit.',
    },
    SOURCE_CLOSED: {
      cause:
        'JetStream, RabbitMQ or kafkajs ended a consumer: its connection or channel was closed, its queue, consumer or stream was deleted, or its codec is unknown. The cause has the reason.',
      result:
        'The loop ends after the handlers that run. Messages that were not acknowledged are delivered again.',
      action:
        'Let the process end, and let its supervisor start it again. Register an unknown [codec](sources.md#kafka).',
    },
    UNREADABLE_ROW: {
      cause:
        'A newer version of Mailroom wrote the row, or it was edited by hand. The message names the attribute.',
      result: 'The row is not changed. A consumer leaves the message in the queue and counts no attempt.',
      action:
        'Deploy the newer version again, or run the command with it. Correct an edited attribute. Only if the work is done, run [`npx cdk-mailroom messages resolve <consumer> <eventId> --force`](cli.md#messages-resolve), which skips the handler.',
    },
  },
});

/** Errors that are logged for an operator. */
export const FINDINGS = section({
  title: 'Findings in logs',
  text: 'Mailroom logs these for an operator. The [runbook](operating.md) has the commands.',
  codes: {
    AUDIT_DOES_NOT_ADD_UP: {
      cause: 'The audit assigned an event to no state or to several: a defect of the audit.',
      result: 'The audit failed and reported no counts.',
      action:
        'Report it with the message. Until it is fixed, check single events with `npx cdk-mailroom why <id>`.',
    },
    EFFECTS_IN_DOUBT: {
      cause:
        'A function stopped between starting an effect and storing its result, or a message with started effects was rejected.',
      result: 'The effect may have happened. A later attempt repeats it under the same idempotency key.',
      action:
        'Ask the provider about the logged key before you discard or resolve the message. If the provider honors keys, a redrive is safe.',
    },
    UNSTABLE_EFFECTS: {
      cause:
        'The attempt that finished a message did not request an effect that an earlier attempt had started: its name is not stable.',
      result: 'The message is processed. The same action may have happened twice, under two names.',
      action:
        'Compare both names in the log and ask the provider. Build names from event data, never from a time, a counter or `ctx.attempt`.',
    },
  },
});

/** Answers of AWS. */
export const AWS = section({
  title: 'DynamoDB, PostgreSQL and EventBridge',
  text: `DynamoDB refused a write, or an answer of a database or of AWS is missing. Other errors of AWS keep their own codes, such as \`ThrottlingException\`.`,
  codes: {
    COMMIT_UNKNOWN: {
      cause:
        'The answer to a COMMIT was lost, and PostgreSQL did not tell its outcome within 40 seconds, or has assigned the id of the transaction again after a crash.',
      result:
        'The transaction was committed, with its events, or rolled back, without them. It was not repeated.',
      action:
        'Before you repeat it, look for one of its rows. Give the row that it creates a key that a repetition cannot write twice.',
    },
    CONDITION_FAILED: {
      cause: 'The condition of a single write is not met. `error.item` is the existing row.',
      result: 'Nothing was written.',
      action: "Handle it where you expect it, with `isMailroomError(error, 'CONDITION_FAILED')`.",
    },
    NO_ANSWER: {
      cause: 'A batch call of EventBridge or DynamoDB returned no result for one of its entries.',
      result: 'The event stays PENDING and is published again. Consumers absorb a duplicate.',
      action:
        'Nothing, unless it happens often: then check the endpoint or the proxy between the function and AWS.',
    },
    NO_CREATION_TIME: {
      cause:
        'The endpoint returned no creation time for the table, from which the first sweep starts. DynamoDB always returns one.',
      result: 'Nothing was swept. The stream relay is not affected.',
      action: 'Use an engine that implements `DescribeTable` completely.',
    },
    PUBLISH_TIMEOUT: {
      cause:
        'EventBridge did not respond to `PutEvents` within the configured time, or an event outlasted its lease.',
      result:
        'It may have been published. It stays PENDING and is published again; consumers absorb duplicates.',
      action:
        'Nothing, unless it lasts: then check the Service Health Dashboard and, in a VPC, the endpoint of EventBridge; or raise `MAILROOM_CLAIM_LEASE_MS`.',
    },
    TRANSACTION_CANCELLED: {
      cause: 'DynamoDB cancelled a transaction. `error.reasons` has the reason of each action, in order.',
      result: 'Nothing was written, and no event was committed.',
      action:
        'For `ConditionalCheckFailed`, handle it as your own case. For conflicts and throttling, let the error through: the message is retried.',
    },
  },
});

/** Answers of `createOncePerKey`. */
export const HTTP = section({
  title: 'HTTP requests',
  text: '`createOncePerKey` answers a request with these codes in a problem document. They reach the caller of your API, without a link.',
  codes: {
    IDEMPOTENCY_KEY_MISSING: {
      cause: 'The request has no header `Idempotency-Key`.',
      result: 'It was answered with 400. Nothing was done.',
      action: 'Send a new random key with each new request, and the same key when you repeat it.',
    },
    IDEMPOTENCY_KEY_REUSED: {
      cause: 'The key was used for a request with another payload.',
      result: 'It was answered with 422. Nothing was done.',
      action: 'Use a new key for a new request.',
    },
    INVALID_REQUEST: {
      cause: 'The key is not made of 1 to 255 visible ASCII characters.',
      result: 'The request was answered with 400. Nothing was done.',
      action: 'Send a random value, such as a UUID.',
    },
    REQUEST_IN_PROGRESS: {
      cause: 'A request with the same key is in progress.',
      result: 'The repeated request was answered with 409 and `Retry-After`.',
      action: 'Repeat it with the same key after that time.',
    },
  },
});
