import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { many } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { time } from '../../terminal/times.ts';
import { type CommandLines, problemsJson } from '../status/status-findings.ts';
import { isPause } from '../status/status-report.ts';
import { bullet, repairLines } from '../status/status-text.ts';
import type { Examination } from './doctor-checks.ts';

/** The result of `mailroom doctor`. Times are epoch milliseconds. */
interface DoctorReport extends Examination {
  readonly stack: string;
  readonly region: string;
  readonly at: number;
  /** No problem was found, and nothing that applies was left unchecked. */
  readonly ok: boolean;
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
  const { problems, notChecked, skipped, checks, stack, region, at } = report;
  const broken = problems.filter((problem) => !isPause(problem)).length;
  const found = [
    ...(broken > 0 ? [paint.red(many(broken, 'problem'))] : []),
    ...(broken < problems.length
      ? [paint.yellow(`${many(problems.length - broken, 'consumer')} paused`)]
      : []),
    ...(notChecked.length > 0 ? [paint.yellow('not everything was checked')] : []),
  ];
  const verdict = found.length === 0 ? paint.green('no problem found') : found.join(', ');
  return [
    prose(`${paint.bold(verdict)} in ${many(checks, 'check')}  ${stack}, ${region}, ${time(at)}`),
    ...problems.flatMap((problem) =>
      bullet(
        {
          what: problem.text,
          ...(problem.fix.length === 0 ? {} : { next: repairLines(problem, lines) }),
        },
        isPause(problem) ? paint.yellow : paint.red,
      ),
    ),
    ...notChecked.flatMap(({ needs, parts }) =>
      bullet({ what: `not checked: ${parts.join(', ')}; needs ${needs.join(' and ')}` }, paint.yellow),
    ),
    ...skipped.map((what) => prose(paint.dim(`  skipped: ${what}`), 4)),
  ].join('\n');
}
