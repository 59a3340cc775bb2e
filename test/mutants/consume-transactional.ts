import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: transactional handlers, and reading a message. */
export const consumeTransactionalMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/transactional-run.ts',
    unit('transactional-run', 'leased-run', 'consumer', 'claimed-run', 'consumer-outages'),
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
        from: 'checkTransaction(actions, { table, clock, ownActions: 2 });',
        to: 'checkTransaction(actions, { table, clock, ownActions: 1 });',
      },
    ],
  ),
  ...mutantsOf('consume/message.ts', unit('consumer-poison', 'claimed-run'), [
    {
      rule: 'hops below 1 do not restart the count of a chain',
      from: '|| Number(hops) < 1',
      to: '',
      killers: ['test/attack/forged-events.test.ts'],
    },
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
