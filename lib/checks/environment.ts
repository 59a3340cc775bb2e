import { Stack, Token, TokenComparison } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** The account and the region of a resource or a stack; a token or `undefined` if they are unknown at synth. */
interface Surroundings {
  readonly account?: string;
  readonly region?: string;
}

/** Reports whether something is known to be in another account or region than a construct. */
export function isElsewhere(its: Surroundings, construct: IConstruct): boolean {
  const own = Stack.of(construct);
  return [
    [its.account, own.account],
    [its.region, own.region],
  ].some(([one = '', other = '']) => Token.compareStrings(one, other) === TokenComparison.DIFFERENT);
}

/** Formats an environment for messages. */
export function environmentText({ account, region }: Surroundings): string {
  return `${account}, ${region}`;
}
