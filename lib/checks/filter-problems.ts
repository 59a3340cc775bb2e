import { encodeRulePattern } from '../../lambdas/runtime/bus/rule-pattern.ts';
import { NUMERIC_MAX, type Subscription } from '../../lambdas/runtime/events/data-filter.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import type { ExternalSubscription } from '../../lambdas/runtime/events/external-event.ts';
import { HEARTBEAT } from '../../lambdas/runtime/events/heartbeat-event.ts';
import { unless } from './refusal.ts';

/**
 * The maximum length of a rule's pattern (EventBridge API reference, PutRule). It leaves no room for the 1,000 combinations of
 * `$or` that EventBridge allows.
 */
const PATTERN_LENGTH_MAX = 4_096;

/** Returns true for an external event. */
export function isExternalEvent(event: EventRef): event is ExternalSubscription {
  return 'external' in event && event.external !== undefined;
}

/** The length of the longer pattern of a consumer's rules: that of its Mailroom events, or that of its external ones. */
export function patternLength(events: readonly Subscription[]): number {
  const external = events.filter(isExternalEvent);
  const others = [...events.filter((event) => !isExternalEvent(event)), HEARTBEAT];
  return Math.max(...[others, external].map((each) => JSON.stringify(encodeRulePattern(each)).length));
}

/** Validates the filters of subscriptions: EventBridge would refuse some of these at deployment, and match others differently. */
export function filtersProblems(events: readonly Subscription[]): string[] {
  const length = patternLength(events);
  return [
    ...events.flatMap(({ type, filter }) =>
      filter === undefined ? [] : objectProblems(`the filter of ${type}`, filter),
    ),
    ...events.flatMap(({ source, type, filter }, i) => {
      const other = events.find((one, at) => at !== i && one.source === source && one.type === type);
      const isFirst = events.findIndex((one) => one.source === source && one.type === type) === i;
      return unless(
        other === undefined || !isFirst || (filter === undefined && other.filter === undefined),
        `events contains ${type} of "${source}" twice, with a filter. Subscribe to it once, and list the alternatives in its filter.`,
      );
    }),
    ...unless(
      length <= PATTERN_LENGTH_MAX,
      `events make a rule pattern of ${length} characters, but EventBridge accepts ${PATTERN_LENGTH_MAX}. Shorten the filters, or divide the ` +
        'events between two consumers.',
    ),
  ];
}

function objectProblems(path: string, filter: unknown): string[] {
  if (!isObject(filter) || Object.keys(filter).length === 0)
    return [
      `${path} is ${shown(filter)}, but must be an object with at least one field. Leave the filter out, or name a field.`,
    ];
  return Object.entries(filter).flatMap(([name, condition]) =>
    fieldProblems(`${path}.${name}`, name, condition),
  );
}

function fieldProblems(path: string, name: string, condition: unknown): string[] {
  if (name === '$or')
    return [
      `${path} is not supported. List the alternatives of one field, or subscribe to all events and decide in the handler.`,
    ];
  if (name === '' || name.includes('.'))
    return [
      `${path} is a field with a "." or without a name, which EventBridge takes for a path. Nest the objects, or rename the field.`,
    ];
  if (!Array.isArray(condition)) {
    if (isObject(condition)) return objectProblems(path, condition);
    return [`${path} is ${shown(condition)}, but must be a list of tests. Write [${shown(condition)}].`];
  }
  if (condition.length === 0)
    return [`${path} is an empty list, which matches nothing. List at least one test.`];
  return [...condition.flatMap((test) => testProblems(path, test)), ...mixProblems(path, condition)];
}

/**
 * In aws/event-ruler 337e8d9, which EventBridge runs, `[{ wildcard: '*y*' }, { 'equals-ignore-case': 'é' }]` matches "true", and other
 * mixes miss texts that they should match.
 */
function mixProblems(path: string, tests: readonly unknown[]): string[] {
  const text = JSON.stringify(tests);
  return unless(
    !(text.includes('"wildcard":') && text.includes('"equals-ignore-case":')),
    `${path} has both wildcard and equals-ignore-case, which EventBridge combines incorrectly. Use only one of them.`,
  );
}

function testProblems(path: string, test: unknown): string[] {
  if (test === null || ['string', 'boolean'].includes(typeof test) || isNumber(test)) return [];
  const [operator = '', ...others] = isObject(test) ? Object.keys(test) : [];
  const check = OPERATORS.get(operator);
  if (!isObject(test) || check === undefined || others.length > 0)
    return [
      `${path} contains ${shown(test)}, but a test must be a string, a number, a boolean, null, or an object with exactly one of ` +
        `${[...OPERATORS.keys()].join(', ')}.`,
    ];
  const expected = check(test[operator]);
  return expected === undefined
    ? []
    : [`${path} contains ${shown(test)}, but ${operator} must be ${expected}.`];
}

/** @returns what the operand must be, if it is not */
type OperandCheck = (operand: unknown) => string | undefined;

const text: OperandCheck = (operand) => (typeof operand === 'string' ? undefined : 'a string');

/** EventBridge compares UTF-16 units here, so it never matches a character that has two. */
const caseless: OperandCheck = (operand) =>
  typeof operand === 'string' && !/[\u{10000}-\u{10ffff}]/u.test(operand)
    ? undefined
    : 'a string without characters beyond U+FFFF, such as emoji';

const wildcard: OperandCheck = (operand) =>
  typeof operand === 'string' && /^(?:\\[\\*]|\*(?!\*)|[^\\*])*$/su.test(operand)
    ? undefined
    : 'a string without "**", in which a backslash is followed only by "*" or another backslash';

const OPERATORS: ReadonlyMap<string, OperandCheck> = new Map([
  ['prefix', text],
  ['suffix', text],
  ['equals-ignore-case', caseless],
  ['wildcard', wildcard],
  ['numeric', numericOperand],
  ['exists', (operand) => (typeof operand === 'boolean' ? undefined : 'true or false')],
  ['anything-but', anythingButOperand],
]);

function numericOperand(operand: unknown): string | undefined {
  const [first, low, second, high, ...more] = Array.isArray(operand) ? operand : [];
  const isBound = (bound: unknown): bound is number => isNumber(bound) && Math.abs(bound) <= NUMERIC_MAX;
  const isOne = second === undefined && high === undefined && ['=', '<', '<=', '>', '>='].includes(first);
  const isRange =
    ['>', '>='].includes(first) &&
    ['<', '<='].includes(second) &&
    isBound(high) &&
    isBound(low) &&
    low < high;
  return isBound(low) && (isOne || isRange) && more.length === 0
    ? undefined
    : `one comparison like [">=", 10], or a range like [">", 0, "<=", 5] whose lower end comes first, with numbers from -${NUMERIC_MAX} to ${NUMERIC_MAX}`;
}

function anythingButOperand(operand: unknown): string | undefined {
  const excluded: unknown[] = [operand].flat();
  if (excluded.length > 0 && (excluded.every(isText) || excluded.every(isNumber))) return undefined;
  if (isObject(operand) && Object.keys(operand).length === 1) {
    const [[operator, operands] = ['', undefined]] = Object.entries(operand);
    const all: unknown[] = [operands].flat();
    const check = TEXT_OPERATORS.includes(operator) ? OPERATORS.get(operator) : undefined;
    if (check && all.length > 0 && all.every((one) => one !== '' && check(one) === undefined))
      return undefined;
  }
  return `strings, numbers (not both), or an object with one of ${TEXT_OPERATORS.join(', ')} and one or more strings that are not empty`;
}

const TEXT_OPERATORS = ['prefix', 'suffix', 'equals-ignore-case', 'wildcard'];

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isNumber(value: unknown): value is number {
  return Number.isFinite(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
