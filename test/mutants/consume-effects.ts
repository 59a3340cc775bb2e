import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The side effects of a message. */
export const consumeEffectMutants: readonly Mutant[] = [
  ...mutantsOf(
    'consume/effect-persistence.ts',
    unit('consumer-effects', 'consumer-stored-effects', 'consumer-lost-answers'),
    [
      {
        rule: 'an effect that was released can run again',
        from: 'OR #status = :RELEASED OR',
        to: 'OR (#status = :RELEASED AND attribute_not_exists(PK)) OR',
      },
      {
        rule: 'a completed effect does not run again',
        from: '(#status = :IN_PROGRESS AND (',
        to: '((#status = :IN_PROGRESS OR attribute_exists(PK)) AND (',
      },
      {
        rule: 'an effect that may be running elsewhere does not start',
        from: '#fence = :fence OR #endsBy < :now',
        to: '#fence = :fence OR #endsBy < :now OR attribute_exists(PK)',
      },
      {
        rule: 'an effect whose function is stopped can run again',
        from: '#fence = :fence OR #endsBy < :now',
        to: '#fence = :fence OR (#endsBy < :now AND attribute_not_exists(PK))',
      },
      {
        rule: 'an effect that is running does not expire',
        from: ' REMOVE expiresAt',
        to: '',
      },
      {
        rule: 'a result that could not be stored is stored again',
        from: 'attempt >= STORE_TRIES',
        to: 'attempt >= 1',
      },
      {
        rule: 'an effect is finished only under the fencing token of its claim',
        from: '#status = :IN_PROGRESS AND fence = :fence',
        to: '#status = :IN_PROGRESS AND (fence = :fence OR attribute_exists(PK))',
      },
      {
        rule: 'a result whose answer was lost is recognised',
        from: 'if (row?.fence === this.#claim.fence && row.status === status) return;',
        to: '',
      },
      {
        rule: 'a result whose answer was lost is recognised by its fencing token',
        from: 'row?.fence === this.#claim.fence && row.status === status',
        to: 'row?.status === status',
      },
      {
        rule: 'the result of an effect is read strongly consistently',
        from: 'get(this.#key, { consistent: true })',
        to: 'get(this.#key)',
        equivalent:
          'Powertools reads the record only if a refusal comes without one, and ours always comes with one.',
      },
    ],
  ),
  ...mutantsOf('consume/once.ts', unit('consumer-effects'), [
    {
      rule: 'an effect does not start twice at once',
      from: 'if (running.has(name))',
      to: 'if (false)',
    },
    {
      rule: 'an effect in a loop does not get the result of the round before',
      from: 'if (succeeded.has(name))',
      to: 'if (false)',
    },
    {
      rule: 'each effect has its own idempotency key',
      from: 'await effect(key)',
      to: 'await effect(consumer)',
    },
    {
      rule: 'the effects of earlier attempts expire with their message',
      from: 'triedBefore ? await effectNames() : [...used]',
      to: '[...used]',
    },
  ]),
];
