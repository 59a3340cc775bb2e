import { createInterface } from 'node:readline/promises';
import { many } from '../cli/terminal/output.ts';
import { prose } from '../cli/terminal/prose.ts';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { destroyCommand } from './receipt.ts';
import { mailroomStack } from './system-name.ts';
import type { VerifyTarget } from './target.ts';

/** The time that a run in AWS is expected to take, seconds: half of it is CloudFormation's. */
const USUAL_S = 2_700;

/** Hours in the month that AWS's monthly prices are divided by. */
const HOURS_A_MONTH = 730;

/** Resources that are paid for by the hour: their number, and each one's price a month in USD (us-east-1, list prices without free tiers). */
export const BY_THE_HOUR = {
  keys: { count: 1, usdAMonth: 1 },
  // More than there are: an alarm on several metrics is paid for each.
  alarms: { count: 130, usdAMonth: 0.1 },
  compositeAlarms: { count: 12, usdAMonth: 0.5 },
  dashboards: { count: 1, usdAMonth: 3 },
  // At most, of all functions together; most of them never report.
  metrics: { count: 100, usdAMonth: 0.3 },
} as const;

/** USD per order: 6 events with 2 consumers each; docs/cost.md has 7 to 12 USD per million events with one. */
const USD_AN_ORDER = 6 * (24 / 1_000_000);

/**
 * Functions that run all the time (empty receives, sweeps, audits), requests to the CDK's bucket, 400 events of the tests, and the
 * scans of the table with which they find them, USD an hour.
 */
const USD_AN_HOUR_OF_CALLS = 0.07;

/** Deploying and verifying, or only destroying what an earlier run left. */
export interface VerifyPlan {
  readonly target: VerifyTarget;
  readonly name: string;
  /** Orders of the demo. */
  readonly orders: number;
  /** Orders per second. */
  readonly rate: number;
  readonly destroyOnly: boolean;
}

/** Describes what a run will do, where, at which price, and how to undo it if it is killed. */
export function planText({ target, name, orders, rate, destroyOnly }: VerifyPlan): string {
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
    prose(
      `Places ${many(orders, 'order')}, ${Math.round(rate)} a second, and runs the tests. Then it destroys the stacks, also if a test fails or you press Ctrl-C.`,
    ),
    ...(ends === true
      ? []
      : ['If this process is killed, destroy them with:', `  ${destroyCommand(target, name)}`]),
  ].join('\n');
}

/**
 * Estimates the price of a run in AWS, generously: at list prices of us-east-1, without free tiers, for each hour or part of one.
 *
 * @param orders - of the demo
 * @param seconds - from deploying to destroying
 * @returns US dollars
 */
export function estimatedUsd(orders: number, seconds: number): number {
  const hours = Math.max(1, Math.ceil(seconds / 3_600));
  const monthly = Object.values(BY_THE_HOUR).reduce(
    (sum, { count, usdAMonth }) => sum + count * usdAMonth,
    0,
  );
  return hours * (monthly / HOURS_A_MONTH + USD_AN_HOUR_OF_CALLS) + orders * USD_AN_ORDER;
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
