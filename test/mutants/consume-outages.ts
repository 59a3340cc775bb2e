import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The names of errors, or their beginnings, that are outages. */
const OUTAGE_NAMES = `
  ProvisionedThroughputExceeded RequestLimitExceeded LimitExceeded TransactionConflict
  TransactionInProgress ReplicatedWriteConflict InternalServer InternalFailure ServiceUnavailable
  ResourceNotFound ResourceInUse AccessDenied NotAuthorized UnrecognizedClient InvalidClientTokenId
  InvalidSignature IncompleteSignature SignatureDoesNotMatch MissingAuthentication ExpiredToken
  OptInRequired CredentialsProvider TokenProvider KMS Timeout RequestTimeout AbortError RequestExpired
  EAI_ ECONN EHOST ENET ENOTFOUND EPIPE EPROTO EADDR EMFILE ENFILE ETIMEDOUT
`;

/** The consumer: outages, and retry delays. */
export const consumeOutageMutants: readonly Mutant[] = [
  ...mutantsOf('consume/outage.ts', unit('outage'), [
    {
      rule: 'a cancelled transaction is an outage only when all of its refusals are',
      from: 'codes.every((code) => OUTAGE.test(code))',
      to: 'codes.some((code) => OUTAGE.test(code))',
    },
    {
      rule: "a transaction that was cancelled by the inbox row's throttle is an outage",
      from: "isMailroomError(error.cause, 'TRANSACTION_CANCELLED') ? error.cause : error",
      to: 'error',
    },
    {
      rule: 'an error of the service without a known name is an outage',
      from: '|| statusOf(error) >= 500',
      to: '',
    },
    {
      rule: "a table of the handler's own that does not exist is no outage",
      from: 'isOutage(error) && !(otherTable && NO_TABLE.test(errorCode(error)))',
      to: 'isOutage(error)',
    },
    {
      rule: "Mailroom's own table that does not exist is an outage",
      from: '!(otherTable && NO_TABLE.test(errorCode(error)))',
      to: '!NO_TABLE.test(errorCode(error))',
    },
    {
      rule: 'a cancelled transaction that names no refusal is not an outage',
      from: 'codes.length > 0 &&',
      to: '',
    },
    {
      rule: 'actions that were not refused do not matter in a cancelled transaction',
      from: ".filter((code) => code !== 'None')",
      to: '',
    },
    {
      rule: 'a key that DynamoDB cannot use is an outage',
      from: '|| isKeyError(error)',
      to: '',
    },
    {
      rule: "only DynamoDB's own validation quotes KMS",
      from: "errorCode(error) === 'ValidationException' &&",
      to: '',
    },
    {
      rule: 'a message that mentions KMS elsewhere is not an outage',
      from: '/^KMS [\\w ]*error:/',
      to: '/KMS [\\w ]*error:/',
    },
    {
      rule: 'an invalid request that mentions KMS otherwise is not an outage',
      from: '/^KMS [\\w ]*error:/',
      to: '/^KMS/',
    },
    {
      rule: 'an internal error of the service is an outage',
      from: 'statusOf(error) >= 500',
      to: 'statusOf(error) > 500',
    },
    {
      rule: 'an invalid request is not an outage',
      from: 'statusOf(error) >= 500',
      to: 'statusOf(error) >= 400',
    },
    {
      rule: 'a status that is not a number is not read',
      from: "typeof $metadata?.httpStatusCode === 'number' ? $metadata.httpStatusCode : 0",
      to: '$metadata?.httpStatusCode',
    },
    {
      rule: 'an error without metadata has no status',
      from: '(error ?? {})',
      to: '(error)',
    },
    {
      rule: "a missing table of the handler's own is the handler's failure",
      from: '/^(ResourceNotFound|AccessDenied)/',
      to: '/^(AccessDenied)/',
    },
    {
      rule: "a refused table of the handler's own is the handler's failure",
      from: '/^(ResourceNotFound|AccessDenied)/',
      to: '/^(ResourceNotFound)/',
    },
    {
      rule: 'an action without a table name writes to the Mailroom table',
      from: 'request?.TableName !== undefined &&',
      to: '',
    },
    {
      rule: 'an action that names the Mailroom table writes to it',
      from: '&& request.TableName !== tableName',
      to: '',
    },
    {
      rule: 'one action to another table suffices',
      from: 'actions.some((action)',
      to: 'actions.every((action)',
    },
  ]),
  ...mutantsOf(
    'consume/outage.ts',
    unit('outage'),
    OUTAGE_NAMES.trim()
      .split(/\s+/)
      .map((name, index, { length }) => {
        const [before, after] = [index === 0 ? '(' : '|', index === length - 1 ? ')' : '|'];
        return {
          rule: `an error that is named ${name} is an outage`,
          from: `${before}${name}${after}`,
          to: `${before}Removed${after}`,
        };
      }),
  ),
  ...mutantsOf('consume/retry-schedule.ts', unit('consumer-schedule', 'consumer-outages', 'consumer-crowd'), [
    {
      rule: 'the delays of a failing handler grow',
      from: 'const RETRY_GROWTH = 4;',
      to: 'const RETRY_GROWTH = 1;',
    },
    {
      rule: 'an outage is waited out for longer each time',
      from: 'const OUTAGE_GROWTH = 2;',
      to: 'const OUTAGE_GROWTH = 1;',
    },
    {
      rule: 'an outage is waited out for 15 minutes at most',
      from: 'const OUTAGE_LONGEST_MS = 900_000;',
      to: 'const OUTAGE_LONGEST_MS = 9_000_000;',
    },
    {
      rule: 'the delays of a failing handler are at most the longest that is configured',
      from: 'RETRY_GROWTH, retryLongestMs)',
      to: 'RETRY_GROWTH, 1e12)',
    },
    {
      rule: 'messages that must run alone come again at different times',
      from: '1_000 + (widthMs - 1_000) * share',
      to: '1_000 + (widthMs - 1_000) * 0.02 * share',
    },
    {
      rule: 'messages that fail together do not return together',
      from: 'const RETRY_JITTER = 0.5;',
      to: 'const RETRY_JITTER = 0;',
    },
    {
      rule: 'a failing message waits for half of its longest delay at least',
      from: 'const RETRY_JITTER = 0.5;',
      to: 'const RETRY_JITTER = 0.6;',
    },
    {
      rule: 'an outage is waited out for a minute at first',
      from: 'const OUTAGE_FIRST_MS = 60_000;',
      to: 'const OUTAGE_FIRST_MS = 30_000;',
    },
    {
      rule: 'an outage is waited out for four fifths of its longest delay at least',
      from: 'const OUTAGE_JITTER = 0.2;',
      to: 'const OUTAGE_JITTER = 0.4;',
    },
    {
      rule: 'messages that met an outage together do not return together',
      from: 'const OUTAGE_JITTER = 0.2;',
      to: 'const OUTAGE_JITTER = 0;',
    },
    {
      rule: 'messages that must run alone are spread over half a minute at first',
      from: 'const SUSPECT_FIRST_MS = 30_000;',
      to: 'const SUSPECT_FIRST_MS = 15_000;',
    },
    {
      rule: 'messages that must run alone are spread over twice the time after four receives',
      from: 'const SUSPECT_DOUBLES_AFTER = 4;',
      to: 'const SUSPECT_DOUBLES_AFTER = 5;',
    },
    {
      rule: 'messages that must run alone are spread over 15 minutes at most',
      from: 'Math.min(OUTAGE_LONGEST_MS, SUSPECT_FIRST_MS * 2 ** (receives / SUSPECT_DOUBLES_AFTER))',
      to: 'SUSPECT_FIRST_MS * 2 ** (receives / SUSPECT_DOUBLES_AFTER)',
    },
    {
      rule: 'a message that must run alone waits for a second at least',
      from: '1_000 + (widthMs - 1_000) * share',
      to: 'widthMs * share',
    },
    {
      rule: 'a delay leaves SQS the time that the function has already used',
      from: 'export const DELAY_MAX_MS = 11 * 3_600_000;',
      to: 'export const DELAY_MAX_MS = 12 * 3_600_000;',
    },
    {
      rule: 'the first retry waits for the first delay',
      from: 'growth ** Math.min(step - 1, 30)',
      to: 'growth ** Math.min(step, 30)',
    },
    {
      rule: 'a delay of zero stays zero however often it grows',
      from: 'growth ** Math.min(step - 1, 30)',
      to: 'growth ** (step - 1)',
    },
    {
      rule: 'the span of a schedule ends with its last attempt',
      from: 'attempt < attempts;',
      to: 'attempt <= attempts;',
    },
    {
      rule: 'the span of a schedule is its shortest',
      from: 'retryDelayMs(attempt, schedule, 1);',
      to: 'retryDelayMs(attempt, schedule, 0);',
    },
  ]),
];
