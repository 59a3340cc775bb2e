/**
 * The type of a value that was written as JSON and read back: a `Date` is a string, `toJSON` is honoured, methods are gone, and
 * what JSON has no text for in a list is `null`. A bigint is `never`: it cannot be written.
 *
 * @example
 * ```ts
 * type Charge = JsonOf<{ chargeId: string; at: Date }>; // { chargeId: string; at: string }
 * ```
 */
export type JsonOf<T> = 0 extends 1 & T // any
  ? T
  : T extends { toJSON(key: never): infer Json }
    ? JsonOf<Json>
    : T extends string | number | boolean | null | undefined
      ? T
      : T extends bigint
        ? never
        : // biome-ignore lint/suspicious/noConfusingVoidType: an effect that returns nothing
          T extends symbol | void | ((...args: never) => unknown)
          ? undefined
          : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
            ? Record<string, never>
            : T extends readonly unknown[]
              ? {
                  [I in keyof T]: JsonOf<T[I]> extends infer Json
                    ? Json extends undefined
                      ? null
                      : Json
                    : never;
                }
              : T extends object
                ? {
                    // A name that JSON has: no symbol, and nothing that can only be called.
                    [Name in keyof T as Name extends symbol
                      ? never
                      : T[Name] extends (...args: never) => unknown
                        ? never
                        : Name]: JsonOf<T[Name]>;
                  }
                : T;
