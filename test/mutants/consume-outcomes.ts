import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: what becomes of a message. */
export const consumeOutcomeMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/message-outcome.ts',
    unit('consumer-time', 'consumer-leases', 'consumer-poison', 'inbox-history'),
    [
      {
        rule: 'a message that is held still waits until its function is stopped',
        from: 'received.delivery.receives > 1 ? refusal.endsBy : refusal.until',
        to: 'refusal.until',
      },
      {
        rule: 'a message that is held waits first for its lease',
        from: 'received.delivery.receives > 1 ? refusal.endsBy : refusal.until',
        to: 'refusal.endsBy',
      },
      {
        rule: 'a message that waits for a time comes after it',
        from: 'wholeSeconds(Math.max(0, time - clock.now())) + 1_000',
        to: 'wholeSeconds(Math.max(0, time - clock.now())) - 1_000',
      },
      {
        rule: 'a rejected message is shown at once, until its receives are spent',
        from: "again(0, new MailroomError(refusal.reason, 'The message was rejected'))",
        to: "again(900_000, new MailroomError(refusal.reason, 'The message was rejected'))",
      },
      {
        rule: 'poison is rejected also without a claim',
        from: 'if (isPoison(error)) return rejectAsPoison(received, error);',
        to: '',
      },
      {
        rule: 'a handler that asks for a delay is given it',
        from: "if (isMailroomError(error, 'RETRY_LATER')) return wholeSeconds(error.retryAfterMs);",
        to: '',
        killers: unit('consumer-schedule'),
      },
      {
        rule: 'a message that failed is shown again in whole seconds, as its row says',
        from: 'Math.ceil(ms / 1_000) * 1_000',
        to: 'ms',
        killers: unit('consumer-ends'),
      },
      {
        rule: 'a message that is too old is rejected',
        from: 'return rejectAsPoison(received, poison(TOO_OLD, refusal.why));',
        to: 'return again(0, poison(TOO_OLD, refusal.why));',
      },
      {
        rule: 'a row whose status is unknown makes its message wait as in an outage',
        from: "case 'unreadable': return reportOutage(",
        to: "case 'unreadable': return rejectAsPoison(",
        killers: unit('consumer-crowd'),
      },
    ],
  ),
  ...mutantsOf(
    'consume/transactional-run.ts',
    unit('consumer-transactional', 'consumer-time', 'consumer-ends', 'consumer-outages'),
    [
      {
        rule: 'a batch is not kept waiting by a transactional handler',
        from: 'given.remainingMs() - RESPONSE_MARGIN_MS',
        to: 'given.remainingMs() + RESPONSE_MARGIN_MS',
      },
      {
        rule: 'a transactional handler is run again on fresh reads only for conditions and conflicts',
        from: 'codes.every(',
        to: 'true || codes.every(',
      },
      {
        rule: 'a transactional handler is run again on fresh reads',
        from: 'attempt < CONDITION_TRIES',
        to: 'attempt < 1',
      },
      {
        rule: 'an outage in a run without a claim is one',
        from: 'if (isOutageOf(actions, config.tableName, error)) return reportOutage(received, error);',
        to: '',
      },
      {
        rule: 'a handler is not run again when there is no time for it',
        from: '&& remainingMs() > TRY_MIN_MS',
        to: '',
      },
      {
        rule: 'a transaction without a claim leaves room for the row and for the pointer of a rejected message',
        from: 'checkTransaction(actions, clock.now(), 2);',
        to: 'checkTransaction(actions, clock.now(), 1);',
      },
    ],
  ),
  ...mutantsOf('consume/message.ts', unit('consumer-poison', 'check-messages'), [
    {
      rule: 'a version that the consumer does not know is not handled',
      from: 'version > definition.version',
      to: 'false',
    },
    {
      rule: 'a handler is given events of the service only that owns them',
      from: 'const handler = handlers.get(refText(bus));',
      to: 'const handler = [...handlers.values()].find((one) => one.definition.type === type);',
    },
    {
      rule: 'a message whose envelope claims another type than EventBridge delivered is not handled',
      from: 'if (bus.type !== type) {',
      to: 'if (false) {',
    },
    {
      rule: 'a payload is validated before its handler sees it',
      from: 'const valid = await validData(definition, data);',
      to: 'const valid = data;',
    },
    {
      rule: 'a message without an event id is unreadable',
      from: "if (!isEventId(eventId)) return 'eventId is not a UUIDv7 in lowercase';",
      to: '',
    },
  ]),
];
