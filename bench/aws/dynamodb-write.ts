import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { Attributes } from '../../testing/attribute-values.ts';
import { Placeholders } from '../../testing/expression-reader.ts';
import type { ActionOutcome as Outcome, Prepared } from '../../testing/memory-action.ts';
import { toItem } from '../../testing/memory-store.ts';
import { parseUpdate } from '../../testing/update.ts';
import { writeUnits } from './billing.ts';
import { storedBytes } from './ordered-view.ts';
import type { Wire } from './wire.ts';

/** What an operation comes to: its answer or its refusal, and the units either way. */
export interface Metered {
  readonly answer: Wire;
  /** The name of the error whose members `answer` has. */
  readonly error?: string;
  readonly writeUnits?: number;
  readonly readUnits?: number;
}

/** What a write came to that was made. */
export type Accepted = Outcome & { readonly refused: false };

interface UpdateInput {
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Attributes;
}

/** The units of a write that did not happen: as if it had, or by the item that is there when that one is larger. */
export function refusedUnits(action: Prepared, transactional: boolean): number {
  const before = action.store.get(action.key);
  return writeUnits(
    { before: storedBytes(before), after: storedBytes(wanted(action, before)) },
    transactional,
  );
}

/** The item that a write was to make; none when it could not have been made. */
function wanted({ after }: Prepared, before: Attributes | undefined): Attributes | undefined {
  try {
    return after(before);
  } catch {
    return undefined;
  }
}

/** The answer to a write whose condition was not met. */
export function refusal(error: string, members: Wire, units: number): Metered {
  return { error, answer: { message: 'The conditional request failed', ...members }, writeUnits: units };
}

/** What a write gives back of its item. */
export function returned(option: unknown, outcome: Accepted, request: Wire): Attributes | undefined {
  if (option === 'ALL_NEW') return outcome.after;
  if (option === 'ALL_OLD') return outcome.before;
  if (option === 'UPDATED_NEW') return updatedIn(request, outcome.after ?? {});
  if (option === 'NONE') return undefined;
  throw new Error(`ReturnValues ${String(option)} is not known to the metered AWS`);
}

/** The attributes that an update named, as they are after it. */
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

/** The members of a write that hold items, as the evaluators take them. */
export function items(request: Wire): Wire {
  const item = (value: unknown): Item | undefined =>
    value === undefined ? undefined : toItem(value as Attributes);
  const made = { ...request };
  for (const name of ['Item', 'Key', 'ExpressionAttributeValues']) {
    if (request[name] !== undefined) made[name] = item(request[name]);
  }
  return made;
}
