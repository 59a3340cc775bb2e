import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Attributes } from './attribute-values.ts';
import { ValidationException } from './validation-exception.ts';

/** A path in an item: attribute names and list indexes, e.g. `['lines', 0, 'sku']` for `lines[0].sku`. */
export type Path = readonly (string | number)[];

const INVALID_PATH = 'The document path provided in the update expression is invalid for update';

/** The value at a path; `undefined` if the path does not exist. */
export function valueAt(item: Attributes, path: Path): AttributeValue | undefined {
  let value: AttributeValue | undefined = { M: item };
  for (const step of path) {
    if (typeof step === 'number') value = value?.L?.[step];
    else value = value?.M && Object.hasOwn(value.M, step) ? value.M[step] : undefined;
  }
  return value;
}

/**
 * Sets the value at a path, in place. An index past the end of a list appends to it.
 *
 * @throws ValidationException if the parent of the value is missing, or is neither a map nor a list
 */
export function setAt(item: Attributes, path: Path, value: AttributeValue): void {
  const { parent, step } = parentOf(item, path);
  if (typeof step === 'number' && parent.L) parent.L[Math.min(step, parent.L.length)] = value;
  else if (typeof step === 'string' && parent.M) parent.M[step] = value;
  else throw new ValidationException(INVALID_PATH);
}

/**
 * Removes the value at a path, in place; does nothing if the path does not exist. Later list elements move up.
 *
 * @throws ValidationException if the parent of the value is missing, or is neither a map nor a list
 */
export function removeAt(item: Attributes, path: Path): void {
  const { parent, step } = parentOf(item, path);
  if (typeof step === 'number' && parent.L) parent.L.splice(step, 1);
  else if (typeof step === 'string' && parent.M) delete parent.M[step];
  else throw new ValidationException(INVALID_PATH);
}

/**
 * @throws ValidationException if two paths of one update overlap, or treat the same value as both a map and a list
 */
export function assertDisjoint(paths: readonly Path[]): void {
  paths.forEach((path, index) => {
    for (const other of paths.slice(index + 1)) {
      const parting = path.findIndex((step, depth) => step !== other[depth]);
      if (parting === -1 || parting >= other.length) throw clash('overlap', path, other);
      if (typeof path[parting] !== typeof other[parting]) throw clash('conflict', path, other);
    }
  });
}

function clash(verb: string, one: Path, two: Path): ValidationException {
  return new ValidationException(
    `Invalid UpdateExpression: Two document paths ${verb} with each other; must remove or rewrite one of these ` +
      `paths; path one: [${one.join(', ')}], path two: [${two.join(', ')}]`,
  );
}

function parentOf(item: Attributes, path: Path): { parent: AttributeValue; step: string | number } {
  const step = path.at(-1);
  const parent = valueAt(item, path.slice(0, -1));
  if (parent === undefined || step === undefined) throw new ValidationException(INVALID_PATH);
  return { parent, step };
}
