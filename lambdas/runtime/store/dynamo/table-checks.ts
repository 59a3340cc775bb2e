import { MailroomError } from '../../base/errors.ts';
import type { EachUpdate, TransactAction } from '../table.ts';
import { UPDATE_EACH_MAX } from '../table.ts';
import { valueProblem } from './item-values.ts';

/** The kind and the content of one {@link TransactAction}. */
export type Action = {
  readonly [K in keyof TransactAction]-?: {
    readonly kind: K;
    readonly request: NonNullable<TransactAction[K]>;
  };
}[keyof TransactAction];

/**
 * Returns the only member of an action that is set.
 *
 * @throws `BAD_WRITE` if no member or more than one is set
 */
export function soleAction(action: TransactAction): Action {
  const set = Object.entries(Object(action)).filter(([, request]) => request !== undefined);
  const [kind, request] = set[0] ?? [];
  if (set.length === 1 && (typeof request !== 'object' || request === null)) {
    throw new MailroomError('BAD_WRITE', `A write has a ${kind} that is not an object.`);
  }
  if (
    set.length === 1 &&
    (kind === 'Put' || kind === 'Update' || kind === 'Delete' || kind === 'ConditionCheck')
  ) {
    return { kind, request } as Action;
  }
  throw new MailroomError(
    'BAD_WRITE',
    `A write has ${set.map(([name]) => name).join(' and ') || 'no member'} set; set exactly one of Put, Update, ` +
      'Delete and ConditionCheck (a ConditionCheck only in a transaction).',
  );
}

/**
 * Returns the members of some actions, after checking that each can be sent. The table and the in-memory table both start with
 * this check. So does a commit, whose errors then name actions by the caller's numbering.
 *
 * @throws `BAD_WRITE` for an action without exactly one member, and `BAD_ITEM` for a value that cannot be stored, naming the action
 * (from 1), the path to the value, and its kind
 */
export function checkedActions(actions: readonly TransactAction[]): Action[] {
  return actions.map((action, index) => checkedAction(action, index + 1, actions.length));
}

/** Checks one of {@link checkedActions}. @param number - its number, from 1 @param count - the number of actions */
export function checkedAction(action: TransactAction, number = 1, count = 1): Action {
  const sole = soleAction(action);
  const { kind, request } = sole;
  const at = `Action ${number} of ${count} (${kind})`;
  if (kind === 'Put') assertStorable(at, 'Item', request.Item);
  else assertStorable(at, 'Key', request.Key);
  assertStorable(at, 'ExpressionAttributeValues', request.ExpressionAttributeValues);
  return sole;
}

function assertStorable(at: string, part: string, attributes: unknown): void {
  const problem = valueProblem(attributes);
  if (problem === undefined) return;
  const { path, kind, remedy } = problem;
  const where = part === 'Item' && path !== '' ? path : [path, `its ${part}`].filter(Boolean).join(' of ');
  throw new MailroomError('BAD_ITEM', `${at}: ${where} is ${kind}, which cannot be stored. ${remedy}`);
}

/**
 * Makes the checks that the table and the in-memory table both apply to a batch of updates. Without them, each of these mistakes
 * would fail as a whole in DynamoDB, or change the meaning of a statement.
 *
 * @throws `BAD_UPDATE`, naming the item and the attribute; `BAD_ITEM` for a value that cannot be stored
 */
export function assertEachUpdates(updates: readonly EachUpdate[]): void {
  if (updates.length > UPDATE_EACH_MAX) {
    throw refusal(
      `${updates.length} updates in one call; at most ${UPDATE_EACH_MAX} are allowed. Split the call.`,
    );
  }
  const keys = new Set<string>();
  for (const [index, update] of updates.entries()) {
    const { PK, SK } = update.key;
    const at = `the update of ${PK} / ${SK}`;
    if (!PK || !SK) throw refusal(`${at} has an empty key; both PK and SK must be non-empty strings.`);
    const key = JSON.stringify([PK, SK]);
    if (keys.has(key))
      throw refusal(
        `${at} appears twice; one call can update an item only once. Merge the updates, or split the call.`,
      );
    keys.add(key);
    assertUpdate(update, at);
    const nth = `Update ${index + 1} of ${updates.length}`;
    assertStorable(nth, 'key', update.key);
    assertStorable(nth, 'Item', update.set);
    assertStorable(nth, '"when"', update.when);
  }
}

function assertUpdate({ set, remove = [], when }: EachUpdate, at: string): void {
  const names = [...Object.keys(set), ...remove];
  if (Object.keys(set).length === 0) throw refusal(`${at} sets nothing; set at least one attribute.`);
  for (const name of names) {
    if (name === 'PK' || name === 'SK') throw refusal(`${at} changes ${name}; a key cannot be changed.`);
    if (names.indexOf(name) !== names.lastIndexOf(name)) throw refusal(`${at} changes ${name} twice.`);
  }
  for (const name of [...names, ...Object.keys(when)]) {
    if (name === '' || name.includes('"'))
      throw refusal(`${at} names the attribute <${name}>, which cannot be quoted.`);
  }
  for (const [name, value] of Object.entries(set)) {
    if (value === undefined) throw refusal(`${at} sets ${name} to undefined; name it in "remove" instead.`);
  }
  for (const [name, value] of Object.entries(when)) {
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw refusal(
        `${at} compares ${name} with ${value === null ? 'null' : `a value of type ${typeof value}`}; "when" accepts ` +
          'strings, numbers and booleans. For anything else, use "write" with a condition expression.',
      );
    }
  }
}

function refusal(message: string): MailroomError {
  return new MailroomError('BAD_UPDATE', `updateEach: ${message}`);
}
