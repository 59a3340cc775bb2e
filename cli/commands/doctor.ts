import { Command } from 'commander';
import type { Deployment } from '../deployment/deployment.ts';
import { readSweepState } from '../deployment/rows-reader.ts';
import { awsResources } from '../reports/doctor/aws-resources.ts';
import type { DoctorDeps } from '../reports/doctor/deployed-resources.ts';
import { examine } from '../reports/doctor/doctor-checks.ts';
import { doctorJson, doctorReport, doctorText } from '../reports/doctor/doctor-text.ts';
import { iamSimulator } from '../reports/doctor/iam-simulator.ts';
import { readOnce } from '../reports/status/part-checks.ts';
import { pausesOf } from '../reports/status/pauses.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { reportOf } from '../terminal/terminal.ts';
import { reporting } from './command.ts';

/** `mailroom doctor`. */
export function doctorCommand(io: Io): Command {
  return new Command('doctor')
    .description(
      'Checks that the deployed resources are as declared: settings, policies, alarms, limits and, on AWS, roles. Changes nothing. ' +
        'Exits with 1 if it finds a problem, or could not check everything.',
    )
    .action(reporting(io, doctor));
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
  const { directory, table, clients, wiring, isLocal, machineAheadMs } = deployment;
  const sweep = readOnce(() => readSweepState(directory, table));
  return {
    directory,
    wiring,
    resources: awsResources(clients, table.name, now),
    pauses: pausesOf(deployment),
    now,
    sweptAt: async () => (await sweep()).sweptTo ?? table.createdAt(),
    rowSchema: async () => (await sweep()).schema,
    machineAheadMs,
    roles: isLocal ? 'local' : ((await iamSimulator(clients.settings)) ?? 'no-client'),
  };
}
