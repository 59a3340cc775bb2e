import { createInterface } from 'node:readline/promises';
import { prose } from '../cli/terminal/prose.ts';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { estimatedUsd } from './price.ts';
import { destroyCommand } from './receipt.ts';
import { mailroomStack } from './system-name.ts';
import type { VerifyTarget } from './target.ts';

/** The time that a run in AWS usually takes, seconds: mostly CloudFormation's. */
const USUAL_S = 1_800;

/** Deploying and verifying, or only destroying what an earlier run left. */
export interface VerifyPlan {
  readonly target: VerifyTarget;
  readonly name: string;
  /** Orders of the demo. */
  readonly orders: number;
  readonly destroyOnly: boolean;
}

/** Describes what a run will do, where, at which price, and how to undo it if it is killed. */
export function planText({ target, name, orders, destroyOnly }: VerifyPlan): string {
  const { account, region, profile, endpoint, ends } = target;
  const where =
    endpoint === undefined
      ? `account ${account}, region ${region}, profile ${profile}`
      : `local engine at ${endpoint}`;
  const stacks = `8 stacks, ${mailroomStack(name)}*`;
  if (destroyOnly) return prose(`Destroys ${stacks}: ${where}.`);
  const usd = estimatedUsd(orders, USUAL_S).toFixed(2);
  return [
    prose(`Deploys ${stacks}: ${where}.`),
    ...(endpoint === undefined
      ? [
          prose(
            `Takes about ${USUAL_S / 60} minutes, and costs about ${usd} USD an hour (list prices of us-east-1, without free tiers).`,
          ),
        ]
      : []),
    prose('Then it destroys them, also if a check fails or you press Ctrl-C.'),
    ...(ends === true
      ? []
      : ['If this process is killed, destroy them with:', `  ${destroyCommand(target, name)}`]),
  ].join('\n');
}

/** The streams of a question to the user. */
export interface Asking {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/**
 * Requires consent before anything in an AWS account changes: `--yes`, or the deployment's name typed at a terminal.
 *
 * @throws `NO_CONSENT` if it is not given
 */
export async function requireConsent(
  { target, name }: Pick<VerifyPlan, 'target' | 'name'>,
  yes: boolean,
  { input, output }: Asking,
): Promise<void> {
  if (target.endpoint !== undefined || yes) return;
  if (input.isTTY !== true) {
    throw new MailroomError(
      'NO_CONSENT',
      `Nothing was changed. To deploy to account ${target.account}, repeat the command with --yes, or run it at a terminal.`,
    );
  }
  const terminal = createInterface({ input, output });
  try {
    // Ctrl-C and the end of the input close it, and leave the question without an answer.
    const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
    const typed = await Promise.race([terminal.question(`Type ${name} to go on: `), closed]);
    if (typed.trim() === name) return;
  } finally {
    terminal.close();
  }
  throw new MailroomError('NO_CONSENT', `Nothing was changed: the answer was not ${name}.`);
}
