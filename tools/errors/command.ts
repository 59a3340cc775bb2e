import { section } from './explanation.ts';

/** Names that the command did not find, and calls that AWS refused. */
export const FINDING = section({
  title: 'Command: credentials and names',
  text: 'The `mailroom` command did not find what you named, or AWS did not answer it. Nothing was changed.',
  codes: {
    ACCESS_DENIED: {
      cause: 'The credentials lack a permission.',
      result: 'AWS refused the call.',
      action:
        'Grant what [Permissions](cli.md#permissions) lists for the command, or choose another `--profile`.',
    },
    AMBIGUOUS_ID: {
      cause: 'The beginning of an id matches several events or dead letters. The message lists some.',
      result: 'Nothing was selected.',
      action: 'Give more of the id.',
    },
    BAD_CATALOG: {
      cause:
        'The module of a catalog cannot be loaded, has no event definitions, exports one only by default, or defines an event twice. The message says which.',
      result: 'Nothing was exported or compared.',
      action:
        'Export each definition of the module by name and once. A TypeScript module needs `esbuild`, or compile it and name the `.js` file.',
    },
    BAD_CREDENTIALS: {
      cause: 'AWS does not know the credentials, or their secret does not match.',
      result: 'AWS refused the call.',
      action: 'Check `--profile` and the AWS variables of the shell.',
    },
    BAD_DIRECTORY: {
      cause:
        'A parameter of the directory in SSM was edited by hand: it does not have the form that Mailroom writes, disagrees with its own name, or names something in another account. For an entry of another Mailroom, it is a finding, not an error.',
      result: 'Nothing was sent to what it names.',
      action: 'Find out who changed it. Deploy its stack again with `npx cdk deploy <stack> --revert-drift`.',
    },
    CREDENTIALS_EXPIRED: {
      cause: 'The AWS credentials have expired.',
      result: 'AWS refused the call. A change may have stopped halfway.',
      action: 'Log in again and repeat the command: every change is safe to repeat.',
    },
    DEFECT: {
      cause: 'An internal error of the command.',
      result: 'The command stopped.',
      action:
        'Report it with the printed text and the output of `npx cdk-mailroom --version`. Repeat a change: that is safe.',
    },
    FUNCTION_FAILED: {
      cause: 'A function that the command invoked threw an error or timed out.',
      result: 'The message quotes its error. A change may have happened in part.',
      action: "Read the function's log with `npx cdk-mailroom logs <eventId>`, then repeat the command.",
    },
    NOTHING_DEPLOYED: {
      cause: 'No Mailroom is deployed in this account and region.',
      result: 'Nothing was read.',
      action: 'Choose another `--region`, `--profile` or `--endpoint`, or deploy one.',
    },
    NOT_A_CATALOG: {
      cause:
        'The file of `--against` is not an AsyncAPI document that `events export` wrote, or a newer version wrote it.',
      result: 'Nothing was compared.',
      action:
        'Export the earlier catalog with `npx cdk-mailroom events export <module>`, and name that file.',
    },
    NOT_IN_POSTGRES: {
      cause: 'The row is in PostgreSQL, and the command changes rows of DynamoDB only.',
      result: 'Nothing was changed.',
      action: 'Run the command that the message names. See [PostgreSQL](postgres.md#operate).',
    },
    NO_BUS: {
      cause: 'The event bus was deleted.',
      result: 'Nothing was published. Events stay PENDING and wait.',
      action: 'Restore the bus with the command that `npx cdk-mailroom status` prints.',
    },
    NO_CREDENTIALS: {
      cause: 'No AWS credentials were found.',
      result: 'Nothing was read.',
      action: 'Choose a `--profile`, log in with `aws sso login`, or use `--stage local`.',
    },
    NO_DIRECTORY: {
      cause:
        "The SSM parameter of the directory does not exist: the table is not a Mailroom's, or an older version deployed it.",
      result: 'Nothing was read.',
      action: 'Deploy the stack of the Mailroom again.',
    },
    NO_MAPPING: {
      cause:
        "The consumer's queue, or the event source mapping from the queue to its function, does not exist.",
      result: 'Nothing was paused or resumed. The consumer receives no messages.',
      action: "Run `npx cdk-mailroom doctor`, and deploy the consumer's stack again with `--revert-drift`.",
    },
    NO_REGION: {
      cause: 'No region is configured.',
      result: 'Nothing was read.',
      action: 'Set `--region`, `AWS_REGION`, or a region in the profile.',
    },
    NO_SUCH_CONSUMER: {
      cause: 'The Mailroom has no consumer of this name. The message lists those it has.',
      result: 'Nothing was read or changed.',
      action: 'Use one of the listed names, or choose another `--stage`.',
    },
    NO_SUCH_DEAD_LETTER: {
      cause:
        'The id is not among the visible dead letters of the source. Another command may hide them for some seconds.',
      result: 'Nothing was changed.',
      action:
        'List them with `npx cdk-mailroom dlq list <source> --verbose`, or repeat the command in a minute.',
    },
    NO_SUCH_EVENT: {
      cause:
        'No event has this id. The row of a published event expires after 7 days by default, and external events have no outbox row.',
      result: 'Nothing was changed.',
      action:
        'Check the id and the stage. To search by an order id or another text, use `npx cdk-mailroom why <text> --since 24h`.',
    },
    NO_SUCH_SOURCE: {
      cause: 'The Mailroom has no dead-letter source of this name. The message lists those it has.',
      result: 'Nothing was read or changed.',
      action: 'Use a listed name, such as `consumer:payments`, `rule:payments`, `dead` or `stream`.',
    },
    NO_SUCH_STAGE: {
      cause: 'No deployed Mailroom matches `--stage`, `--stack` or `MAILROOM_STACK`.',
      result: 'Nothing was read.',
      action: 'Use one of the listed stacks, or another `--region` or `--profile`.',
    },
    OLD_CONSUMER: {
      cause:
        'The function of the consumer was built with an older Mailroom that does not support the request.',
      result: 'Nothing was changed.',
      action: 'Deploy the consumer with the version of the command, then repeat it.',
    },
    OLD_RELAY: {
      cause: 'The sweep function was built with an older Mailroom that does not support the request.',
      result: 'Nothing was published.',
      action: 'Deploy the stack of the Mailroom, then repeat the command.',
    },
    PART_MISSING: {
      cause:
        'A queue, function or other resource of the Mailroom was deleted, but the directory still lists it.',
      result: 'The command stopped.',
      action:
        'Run `npx cdk-mailroom status` for what is missing, and deploy its stack again with `--revert-drift`.',
    },
    SCHEMA_NOT_EXPRESSIBLE: {
      cause:
        'JSON Schema cannot describe the schema of an event definition: it has a `Date`, a bigint or a transform without an input schema, or its validator does not implement Standard JSON Schema.',
      result: 'Nothing was exported or compared.',
      action:
        'Describe the payload as it is in JSON, e.g. a date as a string. Upgrade to zod 4.2, or wrap a valibot schema in `toStandardJsonSchema` of `@valibot/to-json-schema`.',
    },
    STOPPED: {
      cause: 'You stopped the command with Ctrl-C.',
      result: 'Changes made before that remain.',
      action: 'Repeat the command to finish: every change is safe to repeat.',
    },
    UNREACHABLE: {
      cause: 'The endpoint does not respond.',
      result: 'Nothing was read.',
      action:
        'Check the network, `--endpoint` and `--region`. Start a local AWS with `npx cdk-mailroom local`.',
    },
    WHICH_ENGINE: {
      cause: 'Several local engines run.',
      result: 'Nothing was read.',
      action: 'Choose one with `--endpoint`.',
    },
    WHICH_MAILROOM: {
      cause: 'Several Mailrooms are deployed in this account and region.',
      result: 'Nothing was read.',
      action:
        'Choose one with `--stack` or `--stage`, or set `MAILROOM_STACK`. See [Choose a Mailroom](cli.md#choose-a-mailroom).',
    },
  },
});

/** Changes that the command refused. */
export const REFUSED = section({
  title: 'Command: refused changes',
  text: 'The `mailroom` command refused a change, because it could lose or repeat work. The dead letter or message stays as it is.',
  codes: {
    ALREADY_RESENT: {
      cause: 'The event was already sent again with other data. The message names the new event.',
      result: 'Nothing was sent.',
      action:
        'Look at the new event with `npx cdk-mailroom why <id>`. If its data is wrong too, resend its own dead letter.',
    },
    ALREADY_SETTLED: {
      cause: 'Another operator resolved or discarded the message first. The message says who, and why.',
      result: 'Nothing was committed now. `messages resolve --commit` reports it as `committed: false`.',
      action: 'Ask that operator. If the fix is still needed, make it as a new event.',
    },
    CANNOT_RESEND: {
      cause:
        'The event cannot be replaced: it is external or unreadable, processed, held by a worker, has started effects, or its data did not change.',
      result: 'Nothing was sent.',
      action:
        'Do what the message says, such as asking a provider and repeating the command with `--repeat-effects`.',
    },
    CHANGED_SINCE_PLAN: {
      cause: 'A dead letter has changed since the plan was confirmed.',
      result: 'It was left in its source; the others were redriven.',
      action: 'Plan again.',
    },
    CONSUMER_PAUSED: {
      cause: 'The consumer is paused, so messages that are sent to it would only wait there.',
      result: 'Nothing was sent.',
      action: 'Run [`npx cdk-mailroom resume <consumer>`](cli.md#pause-resume) first.',
    },
    EFFECTS_UNCHECKED: {
      cause:
        'Effects of the message have happened or may have, such as a charge, or are others than those of the digest in `--effects-checked`.',
      result: 'Nothing was changed.',
      action:
        'Ask each provider about its key, do by hand what is missing, then repeat the command with `--effects-checked`.',
    },
    FIX_REFUSED: {
      cause:
        "The consumer's function refused to commit the writes and events of `--commit`. The message quotes why.",
      result: 'Nothing was written.',
      action: 'Correct the file and repeat the command.',
    },
    MAPPING_BUSY: {
      cause: 'Lambda is still changing the event source mapping.',
      result: 'The consumer was not paused or resumed.',
      action: 'Wait a minute and repeat the command.',
    },
    MESSAGE_LEASED: {
      cause: 'A worker may hold the message. The message says until when.',
      result: 'Nothing was changed.',
      action:
        'Repeat the command after that time. `--force` takes the message away, but calls outside DynamoDB continue.',
    },
    MESSAGE_READABLE: {
      cause: 'The deployed code can read a message that was unreadable when it was rejected.',
      result: 'Nothing was changed.',
      action:
        'Resolve it under the id of its event, with the command in the message; then delete its dead letter with `dlq redrive`. Functions that have started do not read a decision about the body.',
    },
    NOT_PUBLISHED: {
      cause:
        'Only PUBLISHED events of declared sources can be published again, and a scheduled or cancelled event has no message to resolve.',
      result: 'Nothing was published.',
      action:
        'A PENDING event is published by the relay. Requeue a DEAD one with `npx cdk-mailroom dlq redrive dead <id>`.',
    },
    NOT_REPUBLISHED: {
      cause: 'EventBridge did not accept the event, or did not answer in time.',
      result: 'After a timeout it may have arrived.',
      action: 'Repeat the command: consumers absorb a duplicate.',
    },
    NOT_TOO_OLD: {
      cause:
        '`messages allow` was used for a message that was not rejected as [EVENT_TOO_OLD](#event_too_old).',
      result: 'Nothing was changed.',
      action: 'Redrive it without `allow`.',
    },
    NO_REJECTED_FUNCTION: {
      cause: '`dlq discard --reject` was used, but the handler has no `rejected` function.',
      result: 'Nothing was changed.',
      action: 'Deploy one, or discard without `--reject`.',
    },
    UNREADABLE_DEAD_LETTER: {
      cause:
        'A dead letter of the stream relay does not name a batch of the stream, so it cannot be redriven.',
      result: 'The dead letter stays.',
      action:
        'Run [`npx cdk-mailroom sweep --since 24h --shards 256`](cli.md#sweep), or longer if it was sent earlier. Then discard it.',
    },
  },
});

/** Requests that the Web console refused. */
export const CONSOLE = section({
  title: 'Web console',
  text: 'The server of `npx cdk-mailroom ui` refused a request. Nothing was changed.',
  codes: {
    ALREADY_RUNNING: {
      cause: 'Another change of the same source is running.',
      result: 'The change did not start.',
      action: 'Wait until it ends, or stop it.',
    },
    EXTERNAL_HOST: {
      cause: 'The page was opened under another host name than the one that was printed.',
      result: 'The request was refused, as a guard against DNS rebinding.',
      action: 'Open the printed address.',
    },
    EXTERNAL_ORIGIN: {
      cause: 'Another web page sent the request.',
      result: 'The request was refused.',
      action: 'Nothing. If you did not cause it, close the other page.',
    },
    NOTHING_PLANNED: {
      cause: 'The plan contains nothing to change.',
      result: 'Nothing ran.',
      action: 'Plan again with another selection.',
    },
    NOT_ALLOWED: {
      cause: 'The HTTP method is not allowed.',
      result: 'The request was refused.',
      action: "Use the page, not the server's address.",
    },
    NOT_FOUND: {
      cause: 'The address does not exist.',
      result: 'The request was refused.',
      action: 'Open the printed address.',
    },
    NOT_JSON: {
      cause: 'The request body does not have the type `application/json`.',
      result: 'The request was refused.',
      action: "Use the page, not the server's address.",
    },
    NO_KEY: {
      cause: 'The tab has no key, or that of an earlier run.',
      result: 'The request was refused.',
      action: 'Press Enter in the terminal that runs `npx cdk-mailroom ui`, to open another tab.',
    },
    NO_SERVER: {
      cause: 'The server of the page has stopped.',
      result: 'The page shows its last readings.',
      action: 'Start `npx cdk-mailroom ui` again in the terminal.',
    },
    NO_SUCH_PLAN: {
      cause: 'The plan was applied before, or newer plans have replaced it.',
      result: 'Nothing was changed now.',
      action: 'Plan again.',
    },
    NO_SUCH_RUN: {
      cause: 'The run is not among the last 50.',
      result: 'Nothing was stopped.',
      action: 'Look at Operations for what it did.',
    },
    PAYLOADS_HIDDEN: {
      cause: 'The server was started without `--payload`.',
      result: 'No payload was read.',
      action: 'Start `npx cdk-mailroom ui --payload`.',
    },
    PLAN_EXPIRED: {
      cause: 'The plan is older than two minutes.',
      result: 'Nothing was changed.',
      action: 'Plan again: a verdict may have changed.',
    },
    READ_ONLY: {
      cause: 'The page was started without `--allow-changes`.',
      result: 'Nothing was changed.',
      action: 'Start `npx cdk-mailroom ui --allow-changes`, or run the shown command in a terminal.',
    },
    TOKEN_USED: {
      cause: 'The address was opened before, or is too old.',
      result: 'The tab received no key.',
      action: 'Press Enter in the terminal that runs `npx cdk-mailroom ui`, to open another tab.',
    },
    TOO_LARGE: {
      cause: 'The request body is larger than the server accepts.',
      result: 'The request was refused.',
      action: 'Select fewer dead letters, or use the command.',
    },
    WRONG_CONFIRMATION: {
      cause: 'The typed confirmation is not the one that the plan requires.',
      result: 'Nothing was changed.',
      action: 'Type the shown text.',
    },
  },
});
