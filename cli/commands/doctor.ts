import { Command } from 'commander';
import { doctor } from '../reports/findings/doctor.ts';
import type { Io } from '../terminal/io.ts';
import { reporting } from './command.ts';

/** `mailroom doctor`. */
export function doctorCommand(io: Io): Command {
  return new Command('doctor')
    .description(
      'Compares the deployed resources with their stacks, member by member, and checks alarms, limits, versions and, on AWS, roles. Changes nothing. ' +
        'Exits with 1 if it finds a problem, or could not check everything.',
    )
    .option(
      '--drift',
      "also run CloudFormation's drift detection of the stacks, which takes up to several minutes and covers types that are not compared " +
        'otherwise, such as roles',
    )
    .action(reporting(io, doctor));
}
