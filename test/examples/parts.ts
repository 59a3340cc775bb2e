/**
 * The parts of a deployment as plain data, in the property names of CloudFormation: the same for what the constructs synthesize, for
 * the SAM template and for the Terraform configuration, so that they can be compared. Every reference is a text in braces:
 * `{ReceiptsQueue}` is the name of a part (the URL, of a queue), `{ReceiptsQueue.Arn}` its ARN.
 */
export type Parts = Readonly<Record<string, Part>>;

export interface Part {
  /** The CloudFormation type. */
  readonly type: string;
  readonly properties: Properties;
}

/** Properties of a part. */
// biome-ignore lint/suspicious/noExplicitAny: a template is JSON of any shape
export type Properties = Record<string, any>;

/** A statement of a policy in one notation: lists are lists, in a fixed order. */
export function statement({ Sid, Effect, Principal, Action, Resource, Condition }: Properties): Properties {
  return {
    ...(Sid === undefined ? {} : { Sid }),
    Effect,
    ...(Principal === undefined ? {} : { Principal: Principal === '*' ? { AWS: '*' } : Principal }),
    Action: list(Action).sort(),
    Resource: list(Resource).sort(),
    ...(Condition === undefined ? {} : { Condition: condition(Condition) }),
  };
}

/** Each operator with its keys, and a list of values for each key. */
function condition(operators: Properties): Properties {
  return Object.fromEntries(
    Object.entries(operators)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([operator, keys]) => [
        operator,
        Object.fromEntries(
          Object.entries(keys as Properties).map(([key, values]) => [key, list(values).sort()]),
        ),
      ]),
  );
}

/** A value that may be one or several, as several. */
export function list<T>(value: T | readonly T[]): T[] {
  return Array.isArray(value) ? [...value] : [value as T];
}
