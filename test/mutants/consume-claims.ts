import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The inbox: claiming a message, and what a claim counts. */
export const consumeClaimMutants: readonly Mutant[] = [
  ...mutantsOf(
    'store/inbox-claim.ts',
    unit('inbox-claim', 'consumer-leases', 'leased-run', 'claimed-run', 'consumer-poison'),
    [
      {
        rule: 'a lease never lasts longer than its function',
        from: 'Math.min(claimedAt + inbox.leaseMs, endsBy)',
        to: 'claimedAt + inbox.leaseMs',
      },
      {
        rule: 'each claim has a fencing token of its own',
        from: 'fence: mintToken(inbox.random)',
        to: "fence: 'the same'",
      },
      {
        rule: 'a claim keeps the effects of earlier claims',
        from: "effects: 'if_not_exists(effects, :noEffects)'",
        to: "effects: ':noEffects'",
        killers: unit('consumer-effects'),
      },
      {
        rule: 'attempts begin at 1 at the first receive',
        from: "computed: { attempts: ':one' }, values: { ':one': 1 }, remove: ['retryAt', 'unfinished']",
        to: "computed: { attempts: 'if_not_exists(attempts, :one)' }, values: { ':one': 1 }, remove: ['retryAt', 'unfinished']",
      },
      {
        rule: 'claims without a result begin anew at the first receive',
        from: "remove: ['retryAt', 'unfinished']",
        to: "remove: ['retryAt']",
      },
      {
        rule: 'each claim counts an attempt',
        from: 'if_not_exists(attempts, :zero) + :one',
        to: 'if_not_exists(attempts, :one) + :zero',
      },
      {
        rule: 'a message at its first receive need not run alone',
        from: 'claimable(inbox, message, alone || firstReceive)',
        to: 'claimable(inbox, message, alone)',
      },
      {
        rule: 'a message that runs alone may be claimed however often it ended without a result',
        from: 'claimable(inbox, message, alone || firstReceive)',
        to: 'claimable(inbox, message, firstReceive)',
      },
      {
        rule: 'a claim whose answer was lost is recognised',
        from: 'if (isGranted(claimed, wanted))',
        to: 'if (claimed.ok)',
      },
      {
        rule: 'a message that must run alone is not taken over in company',
        from: "if (!firstReceive && !alone && mustRunAlone(row)) return { status: 'suspect' };",
        to: '',
      },
      {
        rule: 'a message at its first receive is taken over also in company',
        from: '!firstReceive && !alone && mustRunAlone(row)',
        to: '!alone && mustRunAlone(row)',
      },
      {
        rule: 'a takeover whose answer was lost is recognised',
        from: 'if (isGranted(taken, wanted))',
        to: 'if (taken.ok)',
      },
      {
        rule: 'a readmission whose answer was lost is recognised',
        from: 'if (isGranted(readmitted, wanted))',
        to: 'if (readmitted.ok)',
        equivalent:
          'A transaction whose answer was lost is sent again under its token, and the table answers it as it did the first time.',
      },
      {
        rule: 'a claim that ended without a result counts no attempt unless it ran alone',
        from: 'unfinished >= ALONE_FROM ? 1 : 0',
        to: '1',
      },
      {
        rule: 'a claim that ran alone and ended without a result counts an attempt',
        from: 'unfinished >= ALONE_FROM ? 1 : 0',
        to: '0',
      },
      {
        rule: 'a takeover at the first receive begins its attempts at 1',
        from: 'attempts: firstReceive ? 1 : Math.max',
        to: 'attempts: Math.max',
      },
      {
        rule: 'a takeover at the first receive is the first claim without a result',
        from: 'unfinished: firstReceive ? 1 : unfinished + 1',
        to: 'unfinished: unfinished + 1',
      },
      {
        rule: 'each takeover is one more claim without a result',
        from: 'unfinished: firstReceive ? 1 : unfinished + 1',
        to: 'unfinished: firstReceive ? 1 : unfinished',
      },
      {
        rule: 'attempts that a takeover finds are 1 at least',
        from: 'Math.max(1, attemptsOf(row))',
        to: 'attemptsOf(row)',
      },
      {
        rule: 'a message that was taken over says that its function died',
        from: '...(row.outOfTime ? {} : cause)',
        to: '...{}',
      },
      {
        rule: 'the mark of a handler that ran out of time ends with the claim that it belongs to',
        from: "remove: ['outOfTime', 'retryAt']",
        to: "remove: ['retryAt']",
      },
      {
        rule: 'the pointer of a rejected message goes when the message is redriven',
        from: '{ Delete: { Key: { ...rejectedKey(inbox.consumer, message.eventId) } } },',
        to: '',
      },
      {
        rule: 'a redriven message has all of its attempts again',
        from: "computed: { attempts: ':one' }, values: { ':one': 1 }, remove: ['reason'",
        to: "computed: { attempts: 'attempts + :one' }, values: { ':one': 1 }, remove: ['reason'",
      },
      {
        rule: 'whether a message must run alone is read strongly consistently',
        from: 'inbox.table.get(key, { consistent: true })',
        to: 'inbox.table.get(key)',
      },
      {
        rule: 'a message that somebody holds, or that is done, is no suspect',
        from: "return status === 'open' || status === 'abandoned';",
        to: 'return true;',
      },
    ],
  ),
  ...mutantsOf('store/inbox-history.ts', unit('inbox-history'), [
    {
      rule: 'the history of an inbox is read strongly consistently',
      from: 'table.get(inboxHistoryKey(consumer), { consistent: true })',
      to: 'table.get(inboxHistoryKey(consumer))',
    },
    {
      rule: 'the first retention is recorded where there is no history only',
      from: "'attribute_not_exists(PK)'",
      to: "'attribute_not_exists(PK) OR attribute_exists(PK)'",
    },
    {
      rule: 'a retention is added to the history that was read only',
      from: "'changedAt = :found'",
      to: "'changedAt = :found OR attribute_exists(PK)'",
    },
    {
      rule: 'a history that somebody else has written first is looked at again',
      from: "if (!isMailroomError(error, 'CONDITION_FAILED') || writes === WRITES_MAX) throw error;",
      to: 'throw error;',
    },
    {
      rule: 'each change of the history has a time of its own',
      from: 'Math.max(clock.now(), (found?.changedAt ?? 0) + 1)',
      to: 'clock.now()',
    },
    {
      rule: 'a retention that was recorded already is not recorded again',
      from: 'found !== undefined && recorded ? found :',
      to: '',
    },
    {
      rule: 'a history that could not be read is read by the next message',
      from: 'memory.opened = undefined;',
      to: '',
    },
    {
      rule: 'an event is too old by the shortest retention since it was minted',
      from: 'const days = shortestRetentionDays(memory.history, mintedAt, inboxRetentionDays);',
      to: 'const days = inboxRetentionDays;',
    },
    {
      rule: 'a message is too old when its row may have expired',
      from: 'if (clock.now() - mintedAt <= days * DAY_MS) return undefined;',
      to: 'return undefined;',
    },
    {
      rule: 'no message runs while a newer version has written the history of its inbox',
      from: '!isKnownSchema(found.schema)',
      to: 'false',
      killers: unit('newer-rows'),
    },
    {
      rule: 'a row outlives by a day the age at which a repeat is refused',
      from: 'const SPARE_DAYS = 1;',
      to: 'const SPARE_DAYS = 0;',
    },
    {
      rule: 'a foreign event without a row is rejected where its consumer had another name',
      from: 'inboxSince > 0 ?',
      to: 'false ?',
    },
    {
      rule: 'a foreign event without a row runs where its consumer never had another name',
      from: 'inboxSince > 0 ?',
      to: 'true ?',
      killers: unit('consumer-foreign'),
    },
    {
      rule: 'the version before may write under its retention for a day still',
      from: 'next.since + OVERLAP_MS > mintedAt',
      to: 'next.since > mintedAt',
    },
    {
      rule: 'a retention that had ended before an event was minted does not hold for it',
      from: 'return next === undefined || next.since + OVERLAP_MS > mintedAt;',
      to: 'return true;',
    },
    {
      rule: 'the retention of today holds for all events',
      from: 'Math.min(currentDays, ...since',
      to: 'Math.min(...since',
      equivalent:
        'Every function records its retention before it judges an event, so the retention of today is the last of the history.',
    },
  ]),
  ...mutantsOf('consume/delivery.ts', unit('consumer-leases'), [
    {
      rule: 'a message whose receives are unknown may be a repeat',
      from: 'receives >= 1 ? receives : 2',
      to: 'receives >= 1 ? receives : 1',
    },
  ]),
];
