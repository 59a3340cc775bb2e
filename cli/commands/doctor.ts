import { Command } from 'commander';
import { awsWiring } from '../deployment/aws-wiring.ts';
import { readSweepState } from '../deployment/rows-reader.ts';
import type { Session } from '../deployment/session.ts';
import { awsResources } from '../reports/doctor/aws-resources.ts';
import type { DoctorDeps } from '../reports/doctor/deployed-resources.ts';
import { examine } from '../reports/doctor/doctor-checks.ts';
import { doctorJson, doctorReport, doctorText } from '../reports/doctor/doctor-text.ts';
import { iamSimulator } from '../reports/doctor/iam-simulator.ts';
import { readOnce } from '../reports/status/part-checks.ts';
import { pausesOf } from '../reports/status/pauses.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { withSession } from './command.ts';

/** `mailroom doctor`. */
export function doctorCommand(io: Io): Command {
  return new Command('doctor')
    .description(
      'Checks that the deployed resources are as declared: settings, policies, alarms, limits and, on AWS, roles. Changes nothing. ' +
        'Exits with 1 if it finds a problem, or could not check everything.',
    )
    .action(
      withSession(io, async (session) => {
        const { output, directory, region, clock } = session;
        const at = clock.now();
        const found = await examine(await depsOf(session, at), (made, all) =>
          output.progress(`${made} of ${all} checks made`),
        );
        const report = doctorReport(directory, region, at, found);
        output.result(doctorJson(report, session), report, (seen) => doctorText(seen, session));
        return report.ok ? EXIT.ok : EXIT.attention;
      }),
    );
}

async function depsOf(session: Session, now: number): Promise<DoctorDeps> {
  const { directory, table, lambdaReads: lambda } = session;
  const aws = { ...session, lambda, tableName: table.name };
  const sweep = readOnce(() => readSweepState(directory, table));
  return {
    directory,
    wiring: awsWiring(aws),
    resources: awsResources({ ...aws, now }),
    pauses: pausesOf(session),
    now,
    sweptAt: async () => (await sweep()).sweptTo ?? table.createdAt(),
    rowSchema: async () => (await sweep()).schema,
    machineAheadMs: session.machineAheadMs,
    roles: session.isLocal ? 'local' : ((await iamSimulator(session.settings)) ?? 'no-client'),
  };
}
