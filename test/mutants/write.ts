import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** Writing an event beside the service's own writes. */
export const writeMutants: readonly Mutant[] = [
  ...mutantsOf(
    'write/event-draft.ts',
    ['test/attack/forged-events.test.ts'],
    [
      {
        rule: 'a declared type of another service is refused',
        from: '(source === service && (publishes?.includes(type) ?? true))',
        to: 'publishes?.includes(type)',
      },
      {
        rule: 'a type of the service that is not declared is refused',
        from: '(source === service && (publishes?.includes(type) ?? true))',
        to: 'source === service',
      },
    ],
  ),
  ...mutantsOf('write/outbox.ts', unit('outbox'), [
    {
      rule: 'events are written in the transaction of the writes that they tell of',
      from: '[...writes, ...made.map(({ entry }) => entry)]',
      to: '[...writes]',
    },
    {
      rule: "the reasons of a cancelled commit begin with those of the caller's own writes",
      from: '[...writes, ...made.map(({ entry }) => entry)]',
      to: '[...made.map(({ entry }) => entry), ...writes]',
    },
    {
      rule: 'a commit is checked before it is sent',
      from: 'checkTransaction(actions, { table, clock });',
      to: '',
    },
  ]),
  ...mutantsOf('write/outbox-entry.ts', unit('outbox'), [
    {
      rule: 'an outbox row is written only where there is none',
      from: "Item, ConditionExpression: 'attribute_not_exists(PK)'",
      to: 'Item',
    },
    {
      rule: 'an event is born under a lease of the stream relay',
      from: 'leaseUntil = now + config.bornLeaseMs',
      to: 'leaseUntil = now',
    },
    {
      rule: 'an event that its function does not declare is refused',
      from: 'checkDeclared(definition, config);',
      to: '',
      killers: ['test/attack/forged-events.test.ts'],
    },
    {
      rule: 'an event inherits the correlation of the event that caused it',
      from: 'draft.correlationId ?? cause?.correlationId ?? eventId',
      to: 'draft.correlationId ?? eventId',
    },
    {
      rule: 'an event names the event that caused it',
      from: 'draft.causationId ?? cause?.eventId',
      to: 'draft.causationId',
    },
    {
      rule: 'an inherited trace that does not fit is not carried along',
      from: 'xrayHeaderOf(cause?.traceId) ??',
      to: 'cause?.traceId ??',
    },
    {
      rule: 'a row leaves room for what the relay writes on it',
      from: 'ITEM_BYTES_MAX - 8 * 1024',
      to: 'ITEM_BYTES_MAX',
    },
    {
      rule: 'an event that EventBridge would refuse is not committed',
      from: 'published < PUT_EVENTS_BYTES_MAX && ',
      to: '',
    },
    {
      rule: 'EventBridge takes fewer bytes than its limit',
      from: 'published < PUT_EVENTS_BYTES_MAX',
      to: 'published <= PUT_EVENTS_BYTES_MAX',
    },
    {
      rule: 'the trace header counts in the size of an entry',
      from: '    traceHeader: traceId,\n',
      to: '',
    },
    {
      rule: "a producer's turn ends a clock margin before the row's lease",
      from: 'Math.min(now + turnMs, leaseUntil - CLOCK_SKEW_MS)',
      to: 'now + turnMs',
      killers: unit('publish-at-once'),
    },
    {
      rule: "a row says until when it is its producer's",
      from: 'turnMs === undefined ? {}',
      to: 'turnMs !== undefined ? {}',
      killers: unit('publish-at-once'),
    },
  ]),
  ...mutantsOf('store/stored-envelope.ts', unit('stored-envelope'), [
    {
      rule: 'an envelope is compressed where that saves a write unit',
      from: '< textUnits ? compressed : text',
      to: '< 0 ? compressed : text',
    },
    {
      rule: 'an envelope stays text where compressing saves no write unit',
      from: 'const textUnits = writeUnits(itemBytes({ ...row, ...text }));',
      to: 'const textUnits = 1_000;',
    },
    {
      rule: 'the mark is counted: it must not push a compressed row into another unit',
      from: 'rowBytes + MARK_BYTES',
      to: 'rowBytes',
    },
    {
      rule: 'no more is inflated than EventBridge takes',
      from: '{ maxOutputLength: PUT_EVENTS_BYTES_MAX }',
      to: '{}',
    },
    {
      rule: 'damaged text is not published: inflated bytes must be UTF-8',
      from: '{ fatal: true, ignoreBOM: true }',
      to: '{ ignoreBOM: true }',
    },
    {
      rule: 'a byte order mark is part of the text',
      from: 'fatal: true, ignoreBOM: true',
      to: 'fatal: true',
    },
    {
      rule: 'binary in an image of the stream is base64',
      from: "typeof envelope === 'string' ? Buffer.from(envelope, 'base64') : envelope",
      to: 'envelope',
    },
  ]),
  ...mutantsOf('write/event-draft.ts', unit('outbox'), [
    {
      rule: 'a payload is validated as it will be read, not as it was handed over',
      from: 'JSON.parse(json)',
      to: 'draft.data',
    },
  ]),
  ...mutantsOf(
    'write/transaction-checks.ts',
    ['test/attack/reserved-keys.test.ts'],
    [
      {
        rule: 'a commit cannot write the rows of Mailroom itself',
        from: 'reserved !== undefined && outboxEventId({ [kind]: request }) === undefined',
        to: 'false',
      },
    ],
  ),
  ...mutantsOf('write/transaction-checks.ts', unit('outbox'), [
    {
      rule: 'an entry that was made long ago is refused: its published row may have expired',
      from: 'now - eventIdTime(eventId) > ENTRY_AGE_MAX_MS',
      to: 'false',
    },
    {
      rule: 'a transaction has at most 100 actions',
      from: 'count > TRANSACTION_ACTIONS_MAX',
      to: 'false',
    },
    {
      rule: "a consumer's own actions count among the 100",
      from: 'actions.length + ownActions',
      to: 'actions.length',
      killers: unit('leased-context'),
    },
    {
      rule: 'a transaction has at most 4 MB',
      from: 'bytes > TRANSACTION_BYTES_MAX',
      to: 'false',
    },
    {
      rule: 'an empty commit is refused',
      from: 'count === 0',
      to: 'false',
    },
  ]),
  ...mutantsOf('store/retry.ts', unit('retry'), [
    {
      rule: 'every try of a transaction has the same token',
      from: 'table.transact(actions, token)',
      to: 'table.transact(actions, mintToken(random))',
    },
    {
      rule: 'a transaction is tried again at once only when all its refusals are conflicts',
      from: "codes.every((code) => code === 'None' || code === 'TransactionConflict')",
      to: 'true',
    },
    {
      rule: 'a transaction that was fine and cancelled for nothing is no conflict',
      from: "codes.includes('TransactionConflict') &&",
      to: '',
    },
    {
      rule: 'a transaction that met another one is tried again',
      from: 'conflict: { tries: 6,',
      to: 'conflict: { tries: 1,',
    },
    {
      rule: 'a write that met a transaction is tried again',
      from: "failureOf(error) !== 'conflict' || attempt >= tries",
      to: 'true',
    },
    {
      rule: 'a write that was refused is not tried again',
      from: "failureOf(error) !== 'conflict' || attempt >= tries",
      to: 'attempt >= tries',
    },
    {
      rule: 'a transaction that was throttled is tried again',
      from: 'unread: { tries: 3,',
      to: 'unread: { tries: 1,',
    },
    {
      rule: 'a throttle is waited for longer than a conflict',
      from: 'baseMs: 500, capMs: 1_000',
      to: 'baseMs: 25, capMs: 400',
    },
    {
      rule: 'a transaction whose answer was lost is tried again',
      from: 'lost: { tries: 3,',
      to: 'lost: { tries: 1,',
    },
    {
      rule: 'once an answer was lost, a refusal proves nothing',
      from: "if (kind === 'refused') throw (loss ?? { error }).error;",
      to: "if (kind === 'refused') throw error;",
    },
    {
      rule: 'once an answer was lost, a conflict or a throttle without end proves nothing',
      from: 'if (failures[kind] >= tries) throw (loss ?? { error }).error;',
      to: 'if (failures[kind] >= tries) throw error;',
    },
    {
      rule: 'a throttle is no lost answer',
      from: "if (UNREAD.test(code)) return 'unread';",
      to: '',
    },
    {
      rule: 'a conflict that is thrown as an error of its own is one like others',
      from: "if (code === 'TransactionConflictException') return 'conflict';",
      to: '',
    },
    {
      rule: 'a request that DynamoDB refused is not sent again',
      from: "return REFUSED.test(code) ? 'refused' : 'lost';",
      to: "return 'lost';",
    },
  ]),
  ...mutantsOf('store/dynamo-table.ts', unit('dynamo-table-transactions'), [
    {
      rule: 'a transaction is sent once, whatever retries the client makes',
      from: 'sentOnce(new TransactOnceCommand(',
      to: '(new TransactOnceCommand(',
    },
    {
      rule: "a client that caches its middleware still retries its owner's transactions",
      from: 'sentOnce(new TransactOnceCommand(',
      to: 'sentOnce(new TransactWriteItemsCommand(',
    },
  ]),
  ...mutantsOf('client-settings.ts', unit('eventbridge-bus'), [
    {
      rule: 'the connection of a call that EventBridge does not answer is closed',
      from: 'maxAttempts: 1, requestHandler: {',
      to: 'maxAttempts: 1, requestHandler: {}, unused: {',
    },
  ]),
  ...mutantsOf('bus/eventbridge-bus.ts', unit('eventbridge-bus'), [
    {
      rule: 'a publish is sent once, whatever retries the client makes',
      from: 'sentOnce(new PutOnceCommand(',
      to: '(new PutOnceCommand(',
    },
    {
      rule: 'a client that caches the middleware of its owner does not retry a publish',
      from: 'sentOnce(new PutOnceCommand(',
      to: 'sentOnce(new PutEventsCommand(',
    },
  ]),
  ...mutantsOf('store/stored-rows.ts', unit('stored-rows'), [
    {
      rule: 'an outbox row is read with its envelope as text',
      from: 'stored.problem === undefined ? { ...item, envelope: stored.json } : item',
      to: 'item',
    },
    {
      rule: 'an outbox row of an unknown encoding is unreadable',
      from: 'item.encoding === undefined ? undefined : stored.problem',
      to: 'undefined',
    },
  ]),
];
