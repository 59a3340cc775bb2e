import { MailroomError } from '../base/errors.ts';
import type { JsonOf } from '../base/json.ts';
import { poison } from '../base/poison.ts';
import { EFFECTS_MAX } from '../inbox/inbox-effect.ts';
import type { LeasedContext, OnceEachOptions } from './handler.ts';
import { EFFECT_NAME } from './once.ts';

/**
 * Runs one side effect for each item, at most `concurrency` at a time. After the first failure none starts; those that run are awaited.
 *
 * @param once - `ctx.once` of the message's run
 * @param stored - the names of the effects that the message's row has
 */
export async function onceEach<Item, T>(
  once: LeasedContext['once'],
  stored: readonly string[],
  name: string,
  items: Iterable<Item>,
  effect: (item: Item, idempotencyKey: string, signal: AbortSignal) => Promise<T>,
  { key, concurrency = 1 }: OnceEachOptions<Item> = {},
): Promise<JsonOf<T>[]> {
  if (typeof items === 'string') throw invalid('BAD_ARGUMENT', name, 'items is a string; pass a list');
  const named = [...items].map((item, index) => ({ item, name: `${name}.${keyOf(name, item, index, key)}` }));
  checkNames(name, named, stored);
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw invalid('BAD_ARGUMENT', name, `concurrency is ${concurrency}; use a whole number from 1`);
  }
  const results: JsonOf<T>[] = [];
  const waiting = named.entries();
  let failure: { readonly error: unknown } | undefined;
  const worker = async () => {
    for (const [index, { item, name: effectName }] of waiting) {
      try {
        results[index] = await once(effectName, (idempotencyKey, signal) =>
          effect(item, idempotencyKey, signal),
        );
      } catch (error) {
        failure ??= { error };
      }
      if (failure !== undefined) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, named.length) }, worker));
  if (failure !== undefined) throw failure.error;
  return results;
}

function keyOf<Item>(
  name: string,
  item: Item,
  index: number,
  key: OnceEachOptions<Item>['key'],
): string | number {
  const value: unknown = key === undefined ? item : key(item);
  if (typeof value === 'string' || Number.isFinite(value)) return value as string | number;
  const problem =
    key === undefined
      ? `item ${index} is neither a string nor a number; pass the option key, such as key: ({ sku }) => sku`
      : `the key of item ${index} is neither a string nor a number`;
  throw invalid('BAD_EFFECT_NAME', name, problem);
}

/** Checks every name before any effect starts, so that a bad item does not leave half of the effects done. */
function checkNames(
  name: string,
  named: readonly { readonly name: string }[],
  stored: readonly string[],
): void {
  const names = new Set<string>();
  for (const [index, { name: effectName }] of named.entries()) {
    if (!EFFECT_NAME.test(effectName)) {
      throw invalid(
        'BAD_EFFECT_NAME',
        name,
        `item ${index} makes the effect name "${effectName}"; use 1 to 64 letters, digits, dots, dashes and underscores in name and key together`,
      );
    }
    if (names.has(effectName)) {
      throw invalid(
        'EFFECT_REPEATED',
        name,
        `two items make the effect name "${effectName}"; give each item its own key`,
      );
    }
    names.add(effectName);
  }
  const total = new Set([...stored, ...names]).size;
  if (total <= EFFECTS_MAX) return;
  throw poison(
    'TOO_MANY_EFFECTS',
    `ctx.onceEach("${name}") has ${names.size} items, and its message would have ${total} effects; its row stores at most ${EFFECTS_MAX}. ` +
      'None of the items was started. Publish an event for each item, or for each group of items, and run the effect in its handler. Redrive this message ' +
      'only if it has no started effects: events repeat them under other keys.',
  );
}

function invalid(
  code: 'BAD_ARGUMENT' | 'BAD_EFFECT_NAME' | 'EFFECT_REPEATED',
  name: string,
  problem: string,
) {
  return new MailroomError(code, `ctx.onceEach("${name}"): ${problem}.`);
}
