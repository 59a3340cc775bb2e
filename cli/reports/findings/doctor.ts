import { busFaults } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { once, readSweepState, readSweptAt, type SweepReading } from '../../deployment/rows-reader.ts';
import { EXIT } from '../../terminal/io.ts';
import { many } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { reportOf } from '../../terminal/terminal.ts';
import { time } from '../../terminal/times.ts';
import { type DoctorDeps, type Examination, examine } from '../checks/checks.ts';
import { iamSimulator } from '../checks/iam-simulator.ts';
import { pausesOf } from '../checks/pauses.ts';
import { NO_PROBLEM } from './finding-counts.ts';
import {
  type CommandLines,
  countTexts,
  findingLines,
  notCheckedFindings,
  problemFindings,
  problemsJson,
} from './findings.ts';

/** The result of `mailroom doctor`. Times are epoch milliseconds. */
interface DoctorReport extends Examination {
  readonly stack: string;
  readonly region: string;
  readonly at: number;
  /** No problem was found, and nothing that applies was left unchecked. */
  readonly ok: boolean;
}

/** The problems of the deployed resources. */
export async function doctor(deployment: Deployment) {
  const { terminal, directory, region, clock } = deployment;
  const at = clock.now();
  const found = await examine(await depsOf(deployment, at), (made, all) =>
    terminal.progress(`${made} of ${all} checks made`),
  );
  const report = doctorReport(directory, region, at, found);
  return reportOf(
    doctorJson(report, deployment),
    report,
    (seen) => doctorText(seen, deployment),
    report.ok ? EXIT.ok : EXIT.attention,
  );
}

async function depsOf(deployment: Deployment, now: number): Promise<DoctorDeps> {
  const { directory, table, clients, isLocal } = deployment;
  const known = new Map<string, Promise<SweepReading>>();
  return {
    ...deployment,
    pauses: pausesOf(deployment),
    faults: busFaults(deployment, await deployment.claims?.()),
    now,
    sweptAt: () => readSweptAt(directory, deployment),
    rowSchema: async () => (await once(known, 'sweep', () => readSweepState(directory, table))).schema,
    roles: isLocal ? 'local' : await iamSimulator(clients.settings),
  };
}

/** Makes the report of an examination. */
export function doctorReport(
  { mailroom: { stack } }: Directory,
  region: string,
  at: number,
  found: Examination,
): DoctorReport {
  const ok = found.problems.length + found.notChecked.length === 0;
  return { stack, region, at, ok, ...found };
}

/** The document of `mailroom doctor --json`. */
export function doctorJson(report: DoctorReport, lines: CommandLines) {
  return { ...report, problems: problemsJson(report.problems, lines) };
}

/** The report as text: the verdict, and each problem with the command that repairs it. */
export function doctorText(report: DoctorReport, lines: CommandLines): string {
  const { skipped, checks, stack, region, at } = report;
  const findings = [...problemFindings(report.problems, lines), ...notCheckedFindings(report)];
  const [first = paint.green(NO_PROBLEM), ...others] = countTexts(findings, report);
  const verdict = [`${first} in ${many(checks, 'check')}`, ...others].join(', ');
  return [
    prose(`${paint.bold(verdict)}  ${stack}, ${region}, ${time(at)}`),
    ...findingLines(findings),
    ...skipped.map((what) => prose(paint.dim(`  skipped: ${what}`), 4)),
  ].join('\n');
}
