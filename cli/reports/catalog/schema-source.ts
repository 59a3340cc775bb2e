import { isObject } from '../../../lambdas/runtime/base/json.ts';

/** An object of JSON: a document, or a part of one. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The document whose schemas are read, and the work that this may still take. A few lines of references describe more fields than any
 * machine can list, so every step is counted, and they bound the result, which is compared and printed.
 */
export interface SchemaSource {
  /** Takes a step at the current path. @param cost - the number of steps @default 1 */
  step<T>(work: () => T, cost?: number): T;
  /** Names the value that is read, for errors. */
  at(path: string): void;
  /** Returns the target of a reference; `undefined` if the document does not contain it. */
  target(ref: string): unknown;
}

/** The most steps for all schemas of a document: these, and one for each of its characters, of which an ordinary field has more than steps. */
const STEPS_MIN = 100_000;

/** The deepest that schemas, references and alternatives may nest: recursion to this depth fits on any stack. */
const NESTING_MAX = 512;

/**
 * Creates the source of a document.
 *
 * @param length - of its text
 * @param refuse - creates the error for a problem
 */
export function createSchemaSource(
  document: JsonObject,
  length: number,
  refuse: (problem: string) => Error,
): SchemaSource {
  const most = STEPS_MIN + length;
  let [left, depth, path] = [most, 0, ''];
  return {
    at: (now) => {
      path = now;
    },
    step: (work, cost = 1) => {
      left -= cost;
      if (left < 0)
        throw refuse(
          `its schemas, at ${path}, refer to each other too often: reading them takes more than ${most} steps`,
        );
      if (depth >= NESTING_MAX)
        throw refuse(`the schema of ${path} nests more than ${NESTING_MAX} levels deep`);
      depth += 1;
      try {
        return work();
      } finally {
        depth -= 1;
      }
    },
    target: (ref) => {
      const names = ref.split('/').slice(1).map(nameOf);
      if (names.includes(undefined))
        throw refuse(
          `the schema of ${path} has the reference ${JSON.stringify(ref)}, which is not a JSON pointer`,
        );
      return names.reduce<unknown>(
        (at, name) => (isObject(at) && Object.hasOwn(at, String(name)) ? at[String(name)] : undefined),
        document,
      );
    },
  };
}

/** A step of a JSON pointer in a URI; `undefined` if it is not encoded as one. */
function nameOf(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}
