import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';

/** The use of a function as a producer or as a consumer of a Mailroom. */
export interface FunctionUse {
  /** The path of the Mailroom. */
  readonly mailroom: string;
  readonly service: string;
  /** The events that its code publishes in this use. */
  readonly publishes: readonly EventRef[];
  /** The path of the consumer; absent for a producer. */
  readonly consumer?: string;
}

/** The uses of each function: its environment holds one Mailroom, one service and one consumer. */
const USES = new WeakMap<LambdaFunction, readonly FunctionUse[]>();

/** Validates a further use of a function: its environment variables must suit every use. */
export function useProblems(
  used: LambdaFunction,
  { mailroom, service, consumer }: Omit<FunctionUse, 'publishes'>,
): string[] {
  const uses = USES.get(used) ?? [];
  const elsewhere = uses.find((use) => use.mailroom !== mailroom);
  const other = uses.find((use) => use.service !== service);
  const taken = consumer === undefined ? undefined : uses.find((use) => use.consumer !== undefined);
  const { path } = used.node;
  return [
    ...(taken === undefined
      ? []
      : [
          `function is ${path}, which ${taken.consumer} already uses: the environment of a function holds the settings of one consumer. ` +
            `Subscribe ${taken.consumer} to the events of both, or use two functions with the same code.`,
        ]),
    ...(elsewhere === undefined
      ? []
      : [
          `The function ${path} already belongs to the Mailroom ${elsewhere.mailroom}: its environment holds the settings of one Mailroom. ` +
            'Use two functions.',
        ]),
    ...(other === undefined
      ? []
      : [
          `service is "${service}", but the function ${path} already publishes as "${other.service}": its environment holds one service. Use ` +
            'the same service, or two functions.',
        ]),
  ];
}

/**
 * Records a use of a function.
 *
 * @returns the events that its code publishes in all its uses so far
 */
export function addUse(used: LambdaFunction, use: FunctionUse): readonly EventRef[] {
  const uses = [...(USES.get(used) ?? []), use];
  USES.set(used, uses);
  return uses.flatMap(({ publishes }) => publishes);
}
