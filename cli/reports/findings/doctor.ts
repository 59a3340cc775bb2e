import { busFaults } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { once, readSweepState, readSweptAt, type SweepReading } from '../../deployment/rows-reader.ts';
import { detectDrift } from '../../deployment/stack-drift.ts';
import { EXIT } from '../../terminal/io.ts';
import { many } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { reportOf } from '../../terminal/terminal.ts';
import { time } from '../../terminal/times.ts';
import { iamSimulator } from '../checks/iam-simulator.ts';
import { pausesOf } from '../checks/pauses.ts';
import { type DoctorDeps, type Examination, examine } from './examination.ts';
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

/** The problems of the deployed resources. @param options - `drift`: also those that CloudFormation's drift detection finds */
export async function doctor(deployment: Deployment, { drift = false }: { readonly drift?: boolean } = {}) {
  const { terminal, directory, region, clock } = deployment;
  const at = clock.now();
  const detect = (stack: string) =>
    detectDrift(deployment.clients.cloudFormation, stack, { clock, signal: terminal.signal });
  const found = await examine(
    { ...(await depsOf(deployment, at)), detect: drift ? detect : undefined },
    (made, all) => terminal.progress(`${made} of ${all} checks made`),
    (made, all) => terminal.progress(`drift of ${made} of ${all} stacks detected`),
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
    ...deployment.stacks(),
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
  const { skipped, allowed, stack, region, at } = report;
  const findings = [...problemFindings(report.problems, lines), ...notCheckedFindings(report, lines)];
  const counts = countTexts(findings, report);
  const verdict = counts.length === 0 ? paint.green(NO_PROBLEM) : counts.join(', ');
  const { resources } = report.compared;
  const extent = `${many(resources, 'resource')} compared member by member, ${many(report.checks, 'relation')} checked`;
  return [
    prose(`${paint.bold(`${verdict}: ${extent}`)}  ${stack}, ${region}, ${time(at)}`),
    ...findingLines(findings),
    ...allowed.map(({ text }) => prose(paint.dim(`  changed, as a person may: ${text}`), 4)),
    ...notComparedLines(report),
    ...driftLines(report),
    ...skipped.map((what) => prose(paint.dim(`  skipped: ${what}`), 4)),
  ].join('\n');
}

/** One line about what was not compared: the types as a whole, and the members of others. */
function notComparedLines({ notCompared }: DoctorReport): string[] {
  if (notCompared.length === 0) return [];
  const types = notCompared.filter(({ member }) => member === undefined);
  const names = types.map(({ type, count }) => `${count} ${type.replace(/^AWS::/, '')}`);
  const members = new Set(notCompared.flatMap(({ type, member }) => (member ? [`${type} ${member}`] : [])));
  const all = [
    ...names,
    ...(members.size === 0 ? [] : [`${many(members.size, 'member')} of other types (--json)`]),
  ];
  return [prose(paint.dim(`  not compared: ${all.join(', ')}`), 4)];
}

function driftLines({ drift }: DoctorReport): string[] {
  if (drift === null) return [];
  const extent = `${many(drift.resources, 'resource')} of ${many(drift.stacks, 'stack')}`;
  return [prose(paint.dim(`  CloudFormation's drift detection compared ${extent}`), 4)];
}
