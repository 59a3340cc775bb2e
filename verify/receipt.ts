import { prose } from '../cli/terminal/prose.ts';
import { shell } from '../cli/terminal/shell.ts';
import type { VerifyTarget } from './target.ts';

/** The outcome of a check. `not-shown`: this target cannot show it, e.g. a local engine that enforces no IAM. */
type VerifyOutcome = 'passed' | 'failed' | 'not-shown';

/** A finished check: deploying, a test, or destroying. */
export interface VerifyResult {
  readonly check: string;
  readonly outcome: VerifyOutcome;
  readonly seconds: number;
  /** The observation, or the reason why it failed or cannot be shown; empty if its name says everything. */
  readonly detail: string;
}

/** The result of a run. */
export interface VerifyReceipt {
  readonly name: string;
  readonly account: string;
  readonly region: string;
  readonly target: 'aws' | 'local';
  readonly verdict: 'passed' | 'failed' | 'stopped';
  readonly seconds: number;
  /** US dollars at the list prices of us-east-1, for the time it took; 0 for a local engine. */
  readonly estimatedUsd: number;
  readonly checks: readonly VerifyResult[];
  /** True if everything that was deployed is gone. */
  readonly destroyed: boolean;
  /** The command that destroys the rest; absent if `destroyed`, or if the local engine ends with the run. */
  readonly destroyCommand?: string | undefined;
}

/** The words for an outcome, of one width. */
const WORDS: Readonly<Record<VerifyOutcome, string>> = {
  passed: 'passed   ',
  failed: 'FAILED   ',
  'not-shown': 'not shown',
};

const VERDICTS: Readonly<Record<VerifyReceipt['verdict'], string>> = {
  passed: 'VERIFIED',
  failed: 'FAILED',
  stopped: 'STOPPED before it was done',
};

/** The columns before a check's detail. */
const INDENT = 12;

/** The result of a run: it fails if a check failed, or if something is left. */
export function receiptOf(
  run: Pick<VerifyReceipt, 'name' | 'seconds' | 'estimatedUsd' | 'checks' | 'destroyed'> & {
    readonly target: VerifyTarget;
    readonly stopped: boolean;
  },
): VerifyReceipt {
  const { target, stopped, ...kept } = run;
  const failed = run.checks.some(({ outcome }) => outcome === 'failed') || !run.destroyed;
  return {
    ...kept,
    account: target.account,
    region: target.region,
    target: target.endpoint === undefined ? 'aws' : 'local',
    verdict: failed ? 'failed' : stopped ? 'stopped' : 'passed',
    destroyCommand: run.destroyed || target.ends ? undefined : destroyCommand(target, run.name),
  };
}

/** The command that destroys a deployment, to paste as it is. */
export function destroyCommand({ profile, region, endpoint }: VerifyTarget, name: string): string {
  if (endpoint !== undefined)
    return shell`AWS_ENDPOINT_URL=${endpoint} npm run verify -- --local --destroy ${name}`;
  return shell`npm run verify -- --profile ${profile ?? ''} --region ${region} --destroy ${name} --yes`;
}

/** Formats the receipt for people: the verdict, each check, and what is left. */
export function printVerifyReceipt(receipt: VerifyReceipt, target: VerifyTarget): string {
  const { name, account, region, verdict, seconds, estimatedUsd, checks } = receipt;
  const count = (wanted: VerifyOutcome) => checks.filter(({ outcome }) => outcome === wanted).length;
  const where = receipt.target === 'aws' ? `account ${account}, region ${region}` : 'on a local engine';
  const costs =
    receipt.target === 'aws' ? `, about ${estimatedUsd.toFixed(2)} USD (list prices of us-east-1)` : '';
  return [
    prose(
      `${VERDICTS[verdict]}: ${name}, ${where}: ${count('passed')} passed, ${count('failed')} failed, ` +
        `${count('not-shown')} cannot be shown here. ${duration(seconds)}${costs}.`,
    ),
    '',
    ...checks.flatMap(({ check, outcome, seconds, detail }) => [
      prose(`  ${WORDS[outcome]} ${check}  ${seconds} s`, INDENT),
      ...(detail === '' ? [] : detail.split('\n')).map((line) => prose(' '.repeat(INDENT) + line, INDENT)),
    ]),
    '',
    receipt.destroyed ? goneText(receipt.target) : leftText(target, name),
  ].join('\n');
}

/** The text that says how to destroy the remains of a run. */
export function leftText(target: VerifyTarget, name: string): string {
  if (target.ends) return 'Not everything was destroyed. The rest ends with the local engine.';
  return `Not everything was destroyed. To try again:\n  ${destroyCommand(target, name)}`;
}

function goneText(target: VerifyReceipt['target']): string {
  if (target === 'local') return 'Everything was destroyed.';
  return prose(
    "Everything was destroyed. What CloudFormation cannot remove: the alarms' KMS key is deleted after 30 days, free of charge, and " +
      "the functions' code stays in the CDK's bucket until `npx cdk gc`.",
    0,
  );
}

function duration(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
