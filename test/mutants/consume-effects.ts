import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The side effects of a message. */
export const consumeEffectMutants: readonly Mutant[] = [
  ...mutantsOf(
    'store/inbox-effect.ts',
    unit('consumer-effects', 'consumer-stored-effects', 'consumer-leases'),
    [
      {
        rule: 'an effect begins only while its message is ours',
        from: '${held.condition} AND ${STARTABLE}',
        to: '(${held.condition} OR attribute_exists(PK)) AND ${STARTABLE}',
      },
      {
        rule: 'an effect that was released can be run again',
        from: "'(effects.#effect.#status = :RELEASED AND (",
        to: "'(effects.#effect.#status = :RELEASED AND attribute_not_exists(PK) AND (",
      },
      {
        rule: 'a start that lands late does not open what its own call released',
        from: 'OR effects.#effect.#run < :run)',
        to: 'OR effects.#effect.#run <= :run)',
      },
      {
        rule: 'an entry of an unknown status is not waited for again and again',
        from: 'mayRun && Number',
        to: 'Number',
      },
      {
        rule: 'a message has at most 64 effects',
        from: 'size(effects) < :most',
        to: 'size(effects) <= :most',
      },
      {
        rule: 'the limit of effects is for new ones only',
        from: "'((attribute_not_exists(effects.#effect) AND size(effects) < :most) OR ' +",
        to: "'size(effects) < :most AND (attribute_not_exists(effects.#effect) OR ' +",
      },
      {
        rule: 'an effect that is completed is not run again',
        from: "'(effects.#effect.#status = :IN_PROGRESS AND ' +",
        to: "'((effects.#effect.#status = :IN_PROGRESS OR attribute_exists(PK)) AND ' +",
      },
      {
        rule: 'an effect that may still be running elsewhere is not run',
        from: 'OR effects.#effect.endsBy < :stopped',
        to: 'OR effects.#effect.endsBy < :stopped OR attribute_exists(PK)',
      },
      {
        rule: 'an effect whose function is stopped is run again',
        from: 'OR effects.#effect.endsBy < :stopped',
        to: 'OR (effects.#effect.endsBy < :stopped AND attribute_not_exists(PK))',
      },
      {
        rule: 'a function is stopped for certain a clock margin after its end',
        from: "':stopped': startedAt - CLOCK_SKEW_MS",
        to: "':stopped': startedAt",
      },
      {
        rule: 'a message waits for an effect until its function is stopped by every clock',
        from: 'Number(stored?.endsBy) + CLOCK_SKEW_MS',
        to: 'Number(stored?.endsBy)',
      },
      {
        rule: 'an effect that its handler tries again starts at once',
        from: 'effects.#effect.#run <= :run)',
        to: 'effects.#effect.#run <= :run AND attribute_not_exists(PK))',
      },
      {
        rule: 'a start that lands late does not take the place of a later call',
        from: 'effects.#effect.#run <= :run)',
        to: '(effects.#effect.#run <= :run OR attribute_exists(PK)))',
      },
      {
        rule: 'an effect of another claim that may still run is no earlier call of ours',
        from: '((effects.#effect.fence = :heldFence AND',
        to: '(((effects.#effect.fence = :heldFence OR attribute_exists(PK)) AND',
      },
      {
        rule: "an effect is not begun by a worker whose message is another one's",
        from: "throw fenceLost(call, 'was not started');",
        to: 'return undefined;',
      },
      {
        rule: 'an effect may have the name of a property that every object has',
        from: 'isObject(effects) && Object.hasOwn(effects, name)',
        to: 'isObject(effects)',
      },
      {
        rule: 'an effect is finished only under the fencing token of its claim',
        from: 'effects.#effect.fence = :fence AND',
        to: '(effects.#effect.fence = :fence OR attribute_exists(PK)) AND',
      },
      {
        rule: 'an effect is finished only by the call that started it',
        from: 'AND effects.#effect.#run = :run',
        to: 'AND (effects.#effect.#run = :run OR attribute_exists(PK))',
      },
      {
        rule: 'an effect is finished only while it is in progress',
        from: "'effects.#effect.#status = :IN_PROGRESS AND effects",
        to: "'(effects.#effect.#status = :IN_PROGRESS OR attribute_exists(PK)) AND effects",
      },
      {
        rule: 'a result whose answer was lost is recognised',
        from: 'if (ours && stored.status === status) return;',
        to: '',
      },
      {
        rule: 'a result whose answer was lost is recognised by its fencing token',
        from: 'stored?.fence === fence && stored.run === run',
        to: 'stored?.run === run',
      },
      {
        rule: 'a result whose answer was lost is recognised by its call',
        from: 'stored?.fence === fence && stored.run === run',
        to: 'stored?.fence === fence',
      },
    ],
  ),
  ...mutantsOf('consume/effects-in-doubt.ts', unit('consumer-stored-effects'), [
    {
      rule: 'an effect is in doubt only once its function has stopped',
      from: 'Number(endsBy) + CLOCK_SKEW_MS < clock.now()',
      to: 'true',
    },
    {
      rule: 'an effect with a result is not in doubt',
      from: "status === 'IN_PROGRESS' && ",
      to: '',
    },
    {
      rule: 'an effect is in doubt only once its function has stopped by every clock',
      from: 'Number(endsBy) + CLOCK_SKEW_MS < clock.now()',
      to: 'Number(endsBy) < clock.now()',
    },
    {
      rule: 'an effect is in doubt a millisecond after its function has stopped by every clock',
      from: '+ CLOCK_SKEW_MS < clock.now()',
      to: '+ CLOCK_SKEW_MS <= clock.now()',
    },
    {
      rule: 'a message without effects in doubt is not reported',
      from: 'if (inDoubt.length === 0) return;',
      to: '',
    },
    {
      rule: 'each effect in doubt is counted',
      from: "telemetry.count('EffectsInDoubt', inDoubt.length);",
      to: "telemetry.count('EffectsInDoubt');",
    },
    {
      rule: 'an effect in doubt is named by its idempotency key',
      from: 'inDoubt.map((name) => `${config.consumer}:${eventId}:${name}`)',
      to: 'inDoubt',
    },
  ]),
  ...mutantsOf('consume/unstable-effects.ts', unit('consumer-stored-effects'), [
    {
      rule: 'an abandoned effect that was completed is reported',
      from: "status === 'COMPLETED' || status === 'IN_PROGRESS'",
      to: "status === 'IN_PROGRESS'",
    },
    {
      rule: 'an abandoned effect that was running when its attempt died is reported',
      from: "status === 'COMPLETED' || status === 'IN_PROGRESS'",
      to: "status === 'COMPLETED'",
    },
    {
      rule: 'an abandoned effect that failed is not reported',
      from: "(status === 'COMPLETED' || status === 'IN_PROGRESS') &&",
      to: '',
    },
    {
      rule: 'an effect that keeps its name is not reported',
      from: '&& !asked.has(name)',
      to: '',
    },
    {
      rule: 'a message without abandoned effects is not reported',
      from: 'if (left.length === 0) return;',
      to: '',
    },
    {
      rule: 'each abandoned effect is counted',
      from: "telemetry.count('UnstableEffects', left.length);",
      to: "telemetry.count('UnstableEffects');",
    },
  ]),
];
