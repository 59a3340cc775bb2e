import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The side effects of a handler: `ctx.once`. */
export const consumeOnceMutants: readonly Mutant[] = [
  ...mutantsOf('consume/once.ts', unit('consumer-effects', 'consumer-stored-effects'), [
    {
      rule: 'a result that could not be stored is stored again',
      from: '!isOutage(error) ||',
      to: 'true ||',
    },
    {
      rule: 'storing a result ends before its function does',
      from: 'clock.now() + pauseMs > call.claim.endsBy - STORE_MARGIN_MS',
      to: 'false',
    },
    {
      rule: 'a result that the claim found stored costs no write',
      from: 'completedBefore(call) ?? ',
      to: '',
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
      killers: unit('consumer-effects', 'consumer-stored-effects'),
    },
    {
      rule: 'each effect has an idempotency key of its own',
      from: '${ctx.config.consumer}:${call.claim.message.eventId}:${call.name}',
      to: '${ctx.config.consumer}',
    },
    {
      rule: 'the result of an effect is bounded in bytes',
      from: 'Buffer.byteLength(json',
      to: 'String(json',
    },
    {
      rule: 'a result of exactly 4 KB is stored',
      from: 'bytes <= EFFECT_RESULT_MAX_BYTES',
      to: 'bytes < EFFECT_RESULT_MAX_BYTES',
    },
    {
      rule: 'a result of more than 4 KB is refused',
      from: 'const EFFECT_RESULT_MAX_BYTES = 4 * 1024;',
      to: 'const EFFECT_RESULT_MAX_BYTES = 400 * 1024;',
    },
    {
      rule: 'storing a result leaves the time to release the message',
      from: 'const STORE_MARGIN_MS = 3_000;',
      to: 'const STORE_MARGIN_MS = 0;',
    },
    {
      rule: 'an effect name has at most 64 characters',
      from: '{0,63}$/',
      to: '{0,64}$/',
    },
    {
      rule: 'an effect name of 64 characters is allowed',
      from: '{0,63}$/',
      to: '{0,62}$/',
    },
    {
      rule: 'an effect name begins with a letter or a digit',
      from: '/^[A-Za-z0-9][A-Za-z0-9._-]',
      to: '/^[A-Za-z0-9._-][A-Za-z0-9._-]',
    },
    {
      rule: 'an effect name is checked to its end',
      from: '{0,63}$/',
      to: '{0,63}/',
    },
    {
      rule: 'an effect name is checked from its start',
      from: '/^[A-Za-z0-9][A-Za-z0-9._-]',
      to: '/[A-Za-z0-9][A-Za-z0-9._-]',
    },
    {
      rule: 'an effect with a bad name does not run',
      from: 'if (!EFFECT_NAME.test(name)) {',
      to: 'if (false) {',
    },
    {
      rule: 'a requested effect is not reported as unstable',
      from: 'asked.add(name);',
      to: '',
      killers: unit('consumer-stored-effects'),
    },
    {
      rule: 'an effect whose result cannot be stored does not happen again under its claim',
      from: 'happened(); // even if its result cannot be stored',
      to: '',
    },
    {
      rule: 'an effect of a loop is not taken for one that was stored before',
      from: 'if (completed !== undefined) { happened();',
      to: 'if (completed !== undefined) {',
    },
    {
      rule: 'an effect that failed may be requested again',
      from: '.finally(() => running.delete(name))',
      to: '.then((value) => { running.delete(name); return value; })',
    },
    {
      rule: 'an effect that was completed after the claim is not run again',
      from: '(await startEffect(ctx.inbox, call))',
      to: '(await startEffect(ctx.inbox, call), undefined)',
    },
    {
      rule: 'an effect that was completed before returns its stored result',
      from: 'return parsed(completed.result);',
      to: 'return undefined;',
    },
    {
      rule: 'an effect that was released or is in progress does not count as completed',
      from: "effect?.status === 'COMPLETED' ? effect",
      to: 'effect !== undefined ? effect',
    },
    {
      rule: 'an idempotency key names the consumer',
      from: '`${ctx.config.consumer}:${call.claim',
      to: '`${call.claim',
    },
    {
      rule: 'an idempotency key names the event',
      from: ':${call.claim.message.eventId}:',
      to: ':',
    },
    {
      rule: 'an idempotency key names the effect',
      from: 'eventId}:${call.name}`;',
      to: 'eventId}`;',
    },
    {
      rule: 'an effect that fails is released',
      from: 'await releaseEffect(ctx, call); throw error;',
      to: 'throw error;',
    },
    {
      rule: 'an effect whose result cannot be stored is not released as failed',
      from: 'result = await effect(idempotencyKey);',
      to: 'result = await effect(idempotencyKey); jsonOf(call.name, result);',
    },
    {
      rule: 'an effect is released before its handler continues',
      from: 'await releaseEffect(ctx, call);',
      to: 'void releaseEffect(ctx, call);',
    },
    {
      rule: "a handler receives its provider's error although the effect cannot be released",
      from: "telemetry.log.warn('A failed effect could not be released', {",
      to: "throw error; telemetry.log.warn('A failed effect could not be released', {",
    },
    {
      rule: 'a release that fails is logged',
      from: "telemetry.log.warn('A failed effect could not be released', {",
      to: 'void ({',
    },
    {
      rule: 'a failed effect is not stored as completed',
      from: "finishEffect(inbox, call, 'RELEASED')",
      to: "finishEffect(inbox, call, 'COMPLETED')",
    },
    {
      rule: 'a handler continues only after the result of its effect is stored',
      from: 'await storeResult(ctx, call, json);',
      to: 'void storeResult(ctx, call, json).catch(() => {});',
    },
    {
      rule: 'a result is stored within about a second of an outage',
      from: 'backoffMs(attempt, 50, 1_000, random)',
      to: 'backoffMs(attempt, 50, 10_000, random)',
    },
    {
      rule: 'a table that throttles is not asked every few milliseconds to store a result',
      from: 'backoffMs(attempt, 50, 1_000, random)',
      to: 'backoffMs(attempt, 50, 50, random)',
    },
    {
      rule: 'the error of a result that is not JSON does not quote it',
      from: 'is not JSON (${errorCode(error)})',
      to: 'is not JSON (${error})',
    },
    {
      rule: 'an effect that returned nothing returns undefined on a retry, too',
      from: 'json === undefined ? undefined : JSON.parse(json)',
      to: "JSON.parse(json ?? 'null')",
    },
  ]),
];
