import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The transitions of an outbox row, and what counts as one. */
export const relayRowMutants: readonly Mutant[] = [
  ...mutantsOf(
    'store/outbox-transitions.ts',
    unit('outbox-transitions', 'relay-stream', 'relay-stream-failures'),
    [
      {
        rule: 'a claim is conditional on the lease that was read',
        from: 'config.claimLeaseMs }, when: held(row),',
        to: "config.claimLeaseMs }, when: { status: 'PENDING' },",
      },
      {
        rule: 'a claim is conditional on PENDING',
        from: 'config.claimLeaseMs }, when: held(row),',
        to: 'config.claimLeaseMs }, when: { leaseUntil: row.leaseUntil },',
      },
      {
        rule: 'a refused claim is final, because another relay has the row',
        from: '(result.ok || result.refused ? [] : row)',
        to: '(result.ok ? [] : row)',
      },
      {
        rule: 'a claim whose outcome is unknown is reported',
        from: '(result.ok || result.refused ? [] : row)',
        to: '(result.ok || row ? [] : row)',
        killers: unit('relay-turns'),
      },
      {
        rule: 'a lease starts when its claim is sent, not when it is queued',
        from: 'const updates = await updateRows(context, rows, (row) => ({ set: { leaseUntil: clock.now() + config.claimLeaseMs },',
        to: 'const now = clock.now(); const updates = await updateRows(context, rows, (row) => ({ set: { leaseUntil: now + config.claimLeaseMs },',
        killers: unit('relay-turns'),
      },
      {
        rule: 'a claimed row is held under its new lease',
        from: '{ ...row, leaseUntil: Number(set.leaseUntil) }',
        to: 'row',
      },
      {
        rule: 'a row that still has to be published never expires',
        from: 'set: { leaseUntil: clock.now() + config.claimLeaseMs },',
        to: 'set: { leaseUntil: clock.now() + config.claimLeaseMs, expiresAt: 1 },',
      },
      {
        rule: 'a mark is conditional on PENDING',
        from: "({ set, when: { status: 'PENDING' } })",
        to: '({ set, when: {} })',
      },
      {
        rule: 'a failed mark is retried',
        from: 'attempt <= MARK_TRIES',
        to: 'attempt <= 1',
      },
      {
        rule: 'only the marks that failed are retried',
        from: 'unmarked = again;',
        to: 'unmarked = again.length > 0 ? rows : again;',
      },
      {
        rule: 'a published row that could not be marked is reported',
        from: 'if (!settled) again.push(row);',
        to: '',
        killers: unit('unsettled-minutes'),
      },
      {
        rule: 'a DEAD event that was published after all becomes PUBLISHED',
        from: '(!wasDead(result) || (await markDead(context, row, set)))',
        to: 'true',
      },
      {
        rule: 'a producer, which may not remove a pointer, leaves a DEAD event as it is',
        from: "if (context.path === 'producer') return true;",
        to: '',
        killers: unit('publish-at-once'),
      },
      {
        rule: 'a DEAD event that could not be marked is reported as unmarked',
        from: 'return isRefused(error);',
        to: 'return true;',
      },
      {
        rule: 'a failure is recorded only under the lease that the relay holds',
        from: 'attempts, leaseUntil }, when: held(row)',
        to: "attempts, leaseUntil }, when: { status: 'PENDING' }",
      },
      {
        rule: 'a failure is recorded only on a PENDING row',
        from: 'attempts, leaseUntil }, when: held(row)',
        to: 'attempts, leaseUntil }, when: { leaseUntil: row.leaseUntil }',
      },
      {
        rule: 'a failed event waits for its backoff',
        from: 'const leaseUntil = now + backoffMs(attempts, RETRY_BASE_MS, RETRY_CAP_MS, random);',
        to: 'const leaseUntil = now;',
      },
      {
        rule: "an event's own failure counts as an attempt",
        from: 'const attempts = row.attempts + 1;',
        to: 'const attempts = row.attempts;',
      },
      {
        rule: 'an event becomes DEAD when its attempts are exhausted',
        from: 'refused || attempts >= config.maxAttempts',
        to: 'refused',
      },
      {
        rule: 'an event gets all of its attempts',
        from: 'attempts >= config.maxAttempts',
        to: 'attempts >= config.maxAttempts - 1',
      },
      {
        rule: 'an event that the bus refuses becomes DEAD at once',
        from: 'refused || attempts >= config.maxAttempts',
        to: 'attempts >= config.maxAttempts',
      },
      {
        rule: 'an event becomes DEAD only under the lease that the relay holds',
        from: 'deadAt: now }, when: held(row),',
        to: "deadAt: now }, when: { status: 'PENDING' },",
      },
      {
        rule: 'an event becomes DEAD only while it is PENDING',
        from: 'deadAt: now }, when: held(row),',
        to: 'deadAt: now }, when: { leaseUntil: row.leaseUntil },',
      },
      {
        rule: 'an event becomes DEAD in the same transaction as its pointer',
        from: '{ Put: { Item: { ...pointer } } },',
        to: '',
      },
      {
        rule: 'a row is released only under the lease that the relay holds',
        from: 'causeOf(error)) }, when: held(row),',
        to: "causeOf(error)) }, when: { status: 'PENDING' },",
      },
      {
        rule: 'only a PENDING row is released',
        from: 'causeOf(error)) }, when: held(row),',
        to: 'causeOf(error)) }, when: { leaseUntil: row.leaseUntil },',
      },
      {
        rule: 'when a whole batch of updates fails, every row gets an answer',
        from: 'return updates.map(() => ({ ok: false, refused: false, code, message }) as const);',
        to: 'throw error;',
      },
    ],
  ),
  ...mutantsOf('store/outbox-decisions.ts', unit('outbox-transitions', 'relay-stream-failures'), [
    {
      rule: 'a DEAD event becomes PUBLISHED only if it is still DEAD',
      from: "when: { status: 'DEAD' }",
      to: 'when: {}',
    },
    {
      rule: 'the DEAD pointer is deleted when the event turns out to be published',
      from: '{ Delete: { Key: { ...deadKey(eventIdShard(eventId), eventId) } } },',
      to: '',
    },
  ]),
  ...mutantsOf('store/table-requests.ts', unit('outbox-transitions'), [
    {
      rule: 'every clause of a conditional update must be met',
      from: "conditions.join(' AND ')",
      to: "conditions.join(' OR ')",
    },
  ]),
  ...mutantsOf('store/pending-row.ts', unit('relay-stream', 'relay-sweep'), [
    {
      rule: 'a row of a schema that this version does not know is left alone',
      from: '!isKnownSchema(row.schema) || ',
      to: '',
    },
    {
      rule: 'a row of an encoding that this version does not know is left alone',
      from: ' || !isKnownEncoding(item.encoding)',
      to: '',
    },
    {
      rule: 'a page of rows is not inflated as a whole',
      from: 'get detail() {\n        return detailOf(item);\n      },',
      to: 'detail: detailOf(item),',
      killers: unit('outbox'),
    },
    {
      rule: 'only a PENDING row is published',
      from: "row.status !== 'PENDING' ||",
      to: '',
    },
    {
      rule: 'a requeued event waits from its requeue on',
      from: 'isTime(row.requeuedAt) ? row.requeuedAt : 0',
      to: '0',
    },
  ]),
  ...mutantsOf('store/keys.ts', unit('relay-stream', 'relay-sweep'), [
    {
      rule: 'a copy of a row in another partition is not an event',
      from: '&& outboxKeyOf(eventId).PK === PK ?',
      to: '?',
    },
  ]),
];
