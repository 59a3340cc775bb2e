import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { Attributes } from '../../testing/attribute-values.ts';
import { Placeholders } from '../../testing/expression-reader.ts';
import type { ActionOutcome as Outcome, Prepared } from '../../testing/memory-action.ts';
import { toItem } from '../../testing/memory-store.ts';
import { parseUpdate } from '../../testing/update.ts';
import { writeUnits } from './billing.ts';
import { storedBytes } from './ordered-view.ts';
import type { Wire } from './wire.ts';

/** The result of an operation: its response or error, and its units in either case. */
export interface Metered {
  readonly answer: Wire;
  /** The error's name, if `answer` contains an error's members. */
  readonly error?: string;
  readonly writeUnits?: number;
  readonly readUnits?: number;
}

/** The result of an applied write. */
export type Accepted = Outcome & { readonly refused: false };

interface UpdateInput {
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Attributes;
}

/** The units of a refused write: those of the intended write, or of the existing item if it is larger. */
export function refusedUnits(action: Prepared, transactional: boolean): number {
  const before = action.store.get(action.key);
  return writeUnits(
    { before: storedBytes(before), after: storedBytes(wanted(action, before)) },
    transactional,
  );
}

/** The item that a write would have produced; none if that is not possible. */
function wanted({ after }: Prepared, before: Attributes | undefined): Attributes | undefined {
  try {
    return after(before);
  } catch {
    return undefined;
  }
}

/** The response to a write whose condition failed. */
export function refusal(error: string, members: Wire, units: number): Metered {
  return { error, answer: { message: 'The conditional request failed', ...members }, writeUnits: units };
}

/** The part of the item that a write returns. */
export function returned(option: unknown, outcome: Accepted, request: Wire): Attributes | undefined {
  if (option === 'ALL_NEW') return outcome.after;
  if (option === 'ALL_OLD') return outcome.before;
  if (option === 'UPDATED_NEW') return updatedIn(request, outcome.after ?? {});
  if (option === 'NONE') return undefined;
  throw new Error(`The metered AWS does not support ReturnValues ${String(option)}`);
}

/** The attributes that an update named, with their new values. */
function updatedIn(request: Wire, after: Attributes): Attributes {
  const {
    UpdateExpression = '',
    ExpressionAttributeNames,
    ExpressionAttributeValues,
  } = request as UpdateInput;
  const { names } = parseUpdate(
    UpdateExpression,
    new Placeholders(ExpressionAttributeNames, ExpressionAttributeValues),
  );
  return Object.fromEntries(names.flatMap((name) => (after[name] ? [[name, after[name]]] : [])));
}

/** The members of a write that contain items, in the form that the evaluators accept. */
export function items(request: Wire): Wire {
  const item = (value: unknown): Item | undefined =>
    value === undefined ? undefined : toItem(value as Attributes);
  const made = { ...request };
  for (const name of ['Item', 'Key', 'ExpressionAttributeValues']) {
    if (request[name] !== undefined) made[name] = item(request[name]);
  }
  return made;
}
