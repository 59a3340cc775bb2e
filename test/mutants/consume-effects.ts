import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The side effects of a message. */
export const consumeEffectMutants: readonly Mutant[] = [
  ...mutantsOf(
    'store/inbox-effect.ts',
    unit(
      'consumer-effects',
      'consumer-effect-calls',
      'consumer-stored-effects',
      'consumer-fences',
      'consumer-lost-answers',
    ),
    [
      {
        rule: 'an effect that was released can be run again',
        from: 'OR #status = :RELEASED OR',
        to: 'OR (#status = :RELEASED AND attribute_not_exists(PK)) OR',
      },
      {
        rule: 'an effect that is completed is not run again',
        from: '(#status = :IN_PROGRESS AND (',
        to: '((#status = :IN_PROGRESS OR attribute_exists(PK)) AND (',
      },
      {
        rule: 'an effect that may still be running elsewhere is not run',
        from: 'OR endsBy < :stopped',
        to: 'OR endsBy < :stopped OR attribute_exists(PK)',
      },
      {
        rule: 'an effect whose function is stopped is run again',
        from: 'OR endsBy < :stopped',
        to: 'OR (endsBy < :stopped AND attribute_not_exists(PK))',
      },
      {
        rule: 'a function is stopped for certain a clock margin after its end',
        from: "':stopped': startedAt - CLOCK_SKEW_MS",
        to: "':stopped': startedAt",
      },
      {
        rule: 'a message waits for an effect until its function is stopped by every clock',
        from: 'row.endsBy + CLOCK_SKEW_MS',
        to: 'row.endsBy',
      },
      {
        rule: 'an effect that its handler tries again starts at once',
        from: '(fence = :fence AND #run <= :run)',
        to: '(fence = :fence AND #run <= :run AND attribute_not_exists(PK))',
      },
      {
        rule: 'a start that lands late does not take the place of a later call',
        from: '(fence = :fence AND #run <= :run)',
        to: '(fence = :fence AND (#run <= :run OR attribute_exists(PK)))',
      },
      {
        rule: 'an effect of another claim that may still run is no earlier call of ours',
        from: '(fence = :fence AND #run <= :run)',
        to: '((fence = :fence OR attribute_exists(PK)) AND #run <= :run)',
      },
      {
        rule: 'an effect does not expire while it runs',
        from: "remove: ['expiresAt'],",
        to: '',
      },
      {
        rule: 'an effect is finished only under the fencing token of its claim',
        from: '#status = :IN_PROGRESS AND fence = :fence AND #run = :run',
        to: '#status = :IN_PROGRESS AND (fence = :fence OR attribute_exists(PK)) AND #run = :run',
      },
      {
        rule: 'an effect is finished only by the call that started it',
        from: '#status = :IN_PROGRESS AND fence = :fence AND #run = :run',
        to: '#status = :IN_PROGRESS AND fence = :fence AND (#run = :run OR attribute_exists(PK))',
      },
      {
        rule: 'an effect is finished only while it is in progress',
        from: '#status = :IN_PROGRESS AND fence = :fence AND #run = :run',
        to: '(#status = :IN_PROGRESS OR attribute_exists(PK)) AND fence = :fence AND #run = :run',
      },
      {
        rule: 'a result whose answer was lost is recognised',
        from: 'if (ours && row.status === status) return;',
        to: '',
      },
      {
        rule: 'a result whose answer was lost is recognised by its fencing token',
        from: 'row?.fence === fence && row.run === call.run',
        to: 'row?.run === call.run',
      },
      {
        rule: 'a result whose answer was lost is recognised by its call',
        from: 'row?.fence === fence && row.run === call.run',
        to: 'row?.fence === fence',
      },
    ],
  ),
  ...mutantsOf('consume/once.ts', unit('consumer-effects', 'consumer-stored-effects'), [
    {
      rule: 'a result that could not be stored is stored again',
      from: 'attempt >= STORE_TRIES',
      to: 'attempt >= 1',
    },
    {
      rule: 'an effect is not begun twice at once',
      from: 'if (running.has(name))',
      to: 'if (false)',
    },
    {
      rule: 'an effect of a loop is not taken for the one before it',
      from: 'if (succeeded.has(name))',
      to: 'if (false)',
    },
    {
      rule: 'each call of an effect has a number of its own',
      from: 'effects.runs += 1;',
      to: 'effects.runs = 1;',
      killers: unit('consumer-effect-calls', 'consumer-effects'),
    },
    {
      rule: 'each effect has an idempotency key of its own',
      from: '${ctx.config.consumer}:${call.claim.message.eventId}:${call.name}',
      to: '${ctx.config.consumer}',
    },
    {
      rule: 'the effects of earlier attempts expire with their message',
      from: 'stored?.map(({ name }) => name) ?? [...asked]',
      to: '[...asked]',
    },
    {
      rule: 'the effects of a claim that was taken over expire with their message',
      from: 'claim.attempt > 1 || claim.takenOver || claim.lastError !== undefined',
      to: 'claim.attempt > 1',
    },
  ]),
];
