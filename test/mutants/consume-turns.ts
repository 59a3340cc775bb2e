import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: which messages of a batch run, and when they come again. */
export const consumeTurnMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/consumer.ts',
    unit(
      'batch-turn',
      'consumer',
      'consumer-leases',
      'leased-run',
      'transactional-run',
      'consumer-poison',
      'claimed-run',
      'inbox-history',
      'consumer-turns',
    ),
    [
      {
        rule: 'a message is not begun when its function has too little time left',
        from: 'endsBy - clock.now() < START_MIN_MS',
        to: 'false',
      },
      {
        rule: 'a transactional message that comes again is claimed first',
        from: 'receives > 1 || forgottenBecause(inbox, message.eventId) !== undefined',
        to: 'forgottenBecause(inbox, message.eventId) !== undefined',
      },
      {
        rule: 'a transactional message that is too old is claimed first',
        from: 'receives > 1 || forgottenBecause(inbox, message.eventId) !== undefined',
        to: 'receives > 1',
      },
      {
        rule: 'a message is claimed as one that runs alone only when it does',
        from: 'now.length === 1',
        to: 'true',
      },
      {
        rule: 'a message that runs alone is claimed as one that does',
        from: 'now.length === 1',
        to: 'false',
      },
      {
        rule: 'whoever must leave leaves before a message that may kill the process starts',
        from: 'await Promise.all(later.map(({ delivery, outcome }) => hide(receivedOf(ctx, delivery), outcome)));',
        to: 'void Promise.resolve().then(() => Promise.all(later.map(({ delivery, outcome }) => hide(receivedOf(ctx, delivery), outcome))));',
      },
      {
        rule: 'what makes room is shown again',
        from: 'await Promise.all(later.map(({ delivery, outcome }) => hide(receivedOf(ctx, delivery), outcome)));',
        to: '',
      },
      {
        rule: 'what makes room has failed for SQS',
        from: '...later.map(({ delivery, outcome }) => [delivery.message.messageId, outcome.error] as const),',
        to: '',
      },
      {
        rule: 'no message is judged before it is known how long the inbox has kept its rows',
        from: 'await openInbox(inbox);',
        to: 'void openInbox(inbox).catch(() => {});',
      },
      {
        rule: 'a call of our own that fails is an outage',
        from: 'return reportOutage(received, error);',
        to: 'return await failUnclaimed(received, error);',
        killers: unit(
          'consumer-outages',
          'consumer-crowd',
          'leased-context',
          'transactional-run',
          'consumer-leases',
        ),
      },
      {
        rule: 'a run without a claim is not counted as an attempt',
        from: 'envelope, alone, 1)',
        to: 'envelope, alone, 0)',
      },
    ],
  ),
  ...mutantsOf('consume/batch-turn.ts', unit('batch-turn'), [
    {
      rule: 'a message of a batch that must run alone is known before any of them runs',
      from: 'known && (await isSuspect(ctx.inbox, delivery.message)) ? suspects : others',
      to: 'others',
    },
    {
      rule: 'an ordinary batch costs no call',
      from: 'delivery.receives > 1 && isKnown',
      to: 'isKnown',
    },
    {
      rule: 'a batch of one costs no call',
      from: 'if (deliveries.length <= 1) return { now: deliveries, later: [] };',
      to: '',
    },
    {
      rule: 'a message of which nobody knows whether it must run alone waits as in an outage',
      from: 'later.push({ delivery, outcome: reportOutage(receivedOf(ctx, delivery), error) });',
      to: 'others.push(delivery); void error;',
    },
    {
      rule: 'of the messages that must run alone, the one that has waited longest is first',
      from: 'b.receives - a.receives',
      to: 'a.receives - b.receives',
    },
    {
      rule: 'the others of a batch have their turn, too',
      from: 'others.length > 0 && givesWay(suspect)',
      to: 'false',
    },
    {
      rule: 'a message that must run alone has its turn, too',
      from: 'others.length > 0 && givesWay(suspect)',
      to: 'others.length > 0',
    },
    {
      rule: 'a message that must run alone does not wait for others that are not there',
      from: 'others.length > 0 && givesWay(suspect)',
      to: 'givesWay(suspect)',
    },
    {
      rule: 'a suspect gives way at every second of its receives',
      from: '(receives + messageId.charCodeAt(messageId.length - 1)) % 2',
      to: 'messageId.charCodeAt(messageId.length - 1) % 2 + 0 * receives',
    },
    {
      rule: 'suspects with the same number of receives do not all give way together',
      from: 'messageId.charCodeAt(messageId.length - 1)',
      to: '0 * messageId.length',
    },
    {
      rule: 'messages that must run alone do not run beside one another',
      from: 'return { now: [suspect],',
      to: 'return { now: [suspect, ...otherSuspects],',
    },
    {
      rule: 'what makes room for a message that must run alone is shown again',
      from: '[...later, ...makeRoom, ...otherSuspects.map(wait)]',
      to: '[...later, ...otherSuspects.map(wait)]',
    },
    {
      rule: 'a message that must run alone, and whose turn it is not, is shown again',
      from: '[...later, ...makeRoom, ...otherSuspects.map(wait)]',
      to: '[...later, ...makeRoom]',
    },
    {
      rule: 'a message that must run alone comes again when the others have had their turn',
      from: 'later: [...later, ...suspects.map(wait)]',
      to: 'later',
    },
    {
      rule: 'a message that was received once before may be a suspect',
      from: 'delivery.receives > 1 && isKnown',
      to: 'delivery.receives > 2 && isKnown',
    },
    {
      rule: 'a Mailroom message may be a suspect',
      from: 'return isEventId(eventId) || isForeignEventId(eventId);',
      to: 'return isForeignEventId(eventId);',
    },
    {
      rule: 'a foreign message may be a suspect',
      from: 'return isEventId(eventId) || isForeignEventId(eventId);',
      to: 'return isEventId(eventId);',
    },
    {
      rule: 'an unreadable message costs no call',
      from: '&& isKnown(delivery.message.eventId);',
      to: ';',
    },
    {
      rule: 'a message that could not be read waits beside messages that run',
      from: 'return { now: others, later };',
      to: 'return { now: others, later: [] };',
    },
    {
      rule: 'a message that could not be read waits although the others run instead of a suspect',
      from: 'later: [...later, ...suspects.map(wait)]',
      to: 'later: suspects.map(wait)',
    },
    {
      rule: 'a message that could not be read waits although a suspect runs',
      from: 'later: [...later, ...makeRoom,',
      to: 'later: [...makeRoom,',
    },
  ]),
];
