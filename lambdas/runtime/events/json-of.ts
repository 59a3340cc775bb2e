/**
 * The type of a value after it is written as JSON and read back: a `Date` becomes a string, `toJSON` is applied, methods are
 * dropped, and list elements that JSON cannot represent become `null`. A bigint is `never`, because it cannot be serialized.
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
                    // Only names that JSON keeps: no symbols, and no members that are only functions.
                    [Name in keyof T as Name extends symbol
                      ? never
                      : T[Name] extends (...args: never) => unknown
                        ? never
                        : Name]: JsonOf<T[Name]>;
                  }
                : T;
