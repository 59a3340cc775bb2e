import { section } from './explanation.ts';

/** Mistakes in the code or the settings of an app. */
export const YOUR_CODE = section({
  title: 'Code and settings',
  text: `Your code or configuration is not allowed. Nothing was written, published or deployed. In a consumer's handler such an error fails the attempt like
any other: the message is retried, and rejected as [ATTEMPTS_EXHAUSTED](#attempts_exhausted) after the last attempt.`,
  codes: {
    AFTER_COMMIT: {
      cause: 'A handler called `ctx.once` or `ctx.commit` after its `ctx.commit`.',
      result:
        'The call did nothing. A commit that was not yet sent is refused ([NOT_AWAITED](#not_awaited)). If the commit has succeeded, the message is processed without this call.',
      action: 'Put all writes and events into one `ctx.commit`, as the last call of the handler.',
    },
    BAD_ARGUMENT: {
      cause:
        'An argument, an option of the command or a value in a request is missing or not allowed. The message names it.',
      result: 'Nothing was changed.',
      action: 'Correct the value. `npx cdk-mailroom <command> --help` lists the options of a command.',
    },
    BAD_CONFIG: {
      cause:
        'An environment variable of a function is missing or has a value that is not allowed, or a setting such as `metricDimensions` is invalid.',
      result: 'The function does not start, so its messages wait in the queue.',
      action:
        "Do not set Mailroom's variables by hand: deploy the construct that sets them. Without the CDK, see [Without the CDK](without-cdk.md).",
    },
    BAD_CONSUMER: {
      cause:
        'A consumer received something other than a list of handlers, or two handlers take the same event.',
      result: 'The function does not start, so its messages wait in the queue.',
      action:
        'Pass a list of `leased(…)` and `transactional(…)` handlers, one for each event. Combine two handlers of one event, or create a second consumer.',
    },
    BAD_DELAY: {
      cause: 'A handler created a `RetryLater` with a delay that is not a number from 0 to 11 hours.',
      result: 'The attempt failed with this error, and the retry schedule decides the delay.',
      action:
        'Check the value before you pass it. A provider may send a `Retry-After` that is a date or very long.',
    },
    BAD_EFFECT_NAME: {
      cause:
        'The name in `ctx.once(name, …)` is not made of 1 to 64 letters, digits, dots, dashes and underscores.',
      result: 'The effect was not started.',
      action: 'Build the name from the action and from event data, without spaces, such as `"ship-" + sku`.',
    },
    BAD_EVENT_DEFINITION: {
      cause:
        "A property of `defineEvent`, of `externalEvent` or of an event in an operator's fix is not allowed, or the names of a numbered event are too long for a key.",
      result: 'The module does not load; a fix is refused.',
      action: 'Correct the property that the message names.',
    },
    BAD_EVENT_ID: {
      cause: 'A text that should be an event id is not a UUIDv7 in lowercase.',
      result: 'Nothing was read or written.',
      action: 'Pass the `eventId` of an envelope unchanged. Do not create ids yourself.',
    },
    BAD_ITEM: {
      cause:
        'A write contains a value that DynamoDB cannot store, such as a `Date`, an instance of a class, a promise or `NaN`.',
      result: 'Nothing was written.',
      action: 'Convert the value as the message says.',
    },
    BAD_POSTGRES: {
      cause:
        '`MAILROOM_POSTGRES` is missing, or a field or a parameter of it is missing or not allowed. The message names it, and does not repeat the value, which may contain a password.',
      result: 'The function or process does not start.',
      action:
        'Set it to `postgresql://<user>@<host>:<port>/<database>`, or deploy the construct that sets it. See [the address](postgres.md#address).',
    },
    BAD_QUERY: {
      cause: 'A query compares an attribute with `undefined`.',
      result: 'Nothing was read.',
      action: 'Leave the attribute out of `where`, or pass a value.',
    },
    BAD_RANGE: {
      cause: 'The audit was invoked with a range that is not two times, the first before the second.',
      result: 'Nothing was read.',
      action: 'Use `npx cdk-mailroom audit --since 1h` instead of invoking the function by hand.',
    },
    BAD_ROW: {
      cause:
        'A driver or an ORM returned a row of PostgreSQL without a column that was selected, or not as text, because a plugin or a type parser changes its rows. The message names the adapter and the column.',
      result: 'Nothing was published, and no attempt was counted. A commit was rolled back.',
      action: 'Pass an instance without that plugin or type parser. See [drivers](postgres.md#drivers).',
    },
    BAD_SETTINGS: {
      cause:
        'Properties of a construct do not fit each other or the limits of AWS. The message lists every problem.',
      result: 'Synthesis failed, so nothing was deployed.',
      action: 'Correct each property as its line says.',
    },
    BAD_SWEEP_RANGE: {
      cause:
        'The sweep was invoked with a range that is not two times, the first before the second and neither in the future, or with a number of shards that is not 1 to 256.',
      result: 'Nothing was swept.',
      action: 'Use `npx cdk-mailroom sweep --since 1h` instead of invoking the function by hand.',
    },
    BAD_UPDATE: {
      cause: 'A call of `updateEach` contains an update that DynamoDB would refuse or misread.',
      result: 'None of its updates was sent.',
      action: 'Correct the update that the message names.',
    },
    BAD_VERSION: {
      cause: 'The version of an event or of a row, in `ignoreOlder` or `nextVersion`, is not a number.',
      result: 'Nothing was written. `ignoreOlder` rejects the message, `nextVersion` fails the call.',
      action:
        'Give events a `sequence`, and store only versions in the attribute that the message names. Then redrive.',
    },
    BAD_WRITE: {
      cause:
        'A write has no or several of `Put`, `Update`, `Delete` and `ConditionCheck`, uses an item twice in one transaction, or uses a key that is ' +
        'reserved for Mailroom or not among the `domainKeys`.',
      result: 'Nothing was written.',
      action: 'Correct the write that the message names. Write rows of your own service only.',
    },
    EFFECT_REPEATED: {
      cause:
        'A handler called `ctx.once` again with the name of an effect that has already succeeded in this attempt.',
      result: 'The second effect did not run: it would have received the result of the first.',
      action: 'Give each effect its own stable name. In a loop, include the item, such as `"ship-" + sku`.',
    },
    EFFECT_RUNNING: {
      cause: 'A handler called `ctx.once` with the name of an effect that is still running in this attempt.',
      result: 'The second effect did not run.',
      action: 'Await the first call. For two different effects, use two names.',
    },
    EMPTY_COMMIT: {
      cause: 'A commit of a producer has neither writes nor events.',
      result: 'Nothing was written.',
      action: 'Pass at least one write or event, or do not call `commit`.',
    },
    EVENT_TOO_LARGE: {
      cause:
        'An event has 1,000,000 bytes or more as an EventBridge entry, or does not fit into one item of the table.',
      result: 'Nothing was committed. As a dead letter it stays where it is.',
      action: 'Store the large part elsewhere, such as in S3, and put its address into the event.',
    },
    INVALID_EVENT: {
      cause: 'An event was not created by its definition, or one of its properties is not allowed.',
      result: 'Nothing was committed.',
      action:
        'Create events with `OrderPlaced.create({ aggregateId, data })`, and correct the property that the message names.',
    },
    INVALID_PAYLOAD: {
      cause:
        'The payload of an event fails the schema of its definition, or has a value that JSON would [empty or replace](data-model.md#values-in-json).',
      result: 'At the producer, nothing was committed. At a consumer, the message is rejected.',
      action:
        'Correct the producer. At a consumer, deploy a schema or an `upcast` that accepts the payload and redrive, or resend the event with other data.',
    },
    JSON_TOO_DEEP: {
      cause: 'JSON is nested more than 256 levels deep.',
      result: 'It was not parsed, and nothing was changed.',
      action: 'Send flatter JSON. Payloads may have 100 levels.',
    },
    FOREIGN_SCHEMA: {
      cause:
        'The PostgreSQL schema `mailroom`, or an object in it, does not belong to the role that migrates it, or another role may create objects there.',
      result: 'Nothing was changed: its code could run with the rights of that role.',
      action: 'Migrate as the owner of the schema, or remove the object that the error names.',
    },
    NEWER_SCHEMA: {
      cause: 'A newer version of Mailroom has migrated the schema `mailroom` of a PostgreSQL database.',
      result: 'Nothing was changed.',
      action: 'Run the version that migrated it, or a newer one.',
    },
    NO_COMMIT: {
      cause:
        'A `transactional` handler or a `rejected` function returned something other than `{ writes, events }`.',
      result: 'Nothing was written.',
      action: 'Return `{ writes, events }`, or `{}` to write nothing.',
    },
    NOT_AWAITED: {
      cause:
        'A handler called `ctx.commit` while a `ctx.once` was under way, or after a failure that it neither awaited nor caught.',
      result:
        'Nothing was committed. The message fails even if the handler catches this error. An effect that is under way is waited for.',
      action:
        'Await each `ctx.once` and `ctx.onceEach` before `ctx.commit`, also those whose error you catch. See [Find un-awaited calls](testing.md#find-un-awaited-calls).',
    },
    NOT_DECLARED: {
      cause:
        'A function publishes an event that its construct does not declare, or that belongs to another service.',
      result: 'Nothing was committed: the relay would not have published the event.',
      action:
        'Add the event to `publishes` in `addProducer` or `InboxConsumer`, and deploy. In a consumer, then redrive the messages that were rejected meanwhile. If another service owns the event, publish it there.',
    },
    SCHEDULE_BROKEN: {
      cause: '`explore` found an order of calls, crashes or lost responses after which your `check` fails.',
      result: 'The test fails and prints the calls up to the failure.',
      action:
        'Repeat the schedule with the printed `seed`, and correct the handler. See [Testing](testing.md#explore-every-crash).',
    },
    STALE_ENTRY: {
      cause:
        'An entry of `outbox.entries` was written more than 5 minutes after it was created, usually because it was kept and reused.',
      result: 'The transaction was not sent.',
      action: 'Call `outbox.entries` for each transaction, and use its result at once.',
    },
    TRANSACTION_TOO_LARGE: {
      cause:
        'A commit has more than 100 actions or more than 4,000,000 bytes, the limits of a DynamoDB transaction. In a consumer the inbox row is one action.',
      result: 'Nothing was written.',
      action:
        'Commit less at once: let the handler publish an event for each part, or store large parts elsewhere.',
    },
  },
});
