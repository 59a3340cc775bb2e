import type { BusFault } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { type CheckDeps, check, FIND_MISSED, type PartCheck, stackNameOf } from './check.ts';

/** The consumers whose directory entry was deleted, or cannot be used: no other check is about them. */
export function unlistedChecks({ directory }: CheckDeps): PartCheck[] {
  return (directory.unlisted ?? []).map(({ name: part, parameter, fault }) =>
    check(part, 'flow', async function* () {
      const unseen =
        'no command, alarm or audit sees its events and dead letters. The command names its stack; deploy that one with --revert-drift';
      const fix = stackNameOf(parameter);
      if (fault === undefined)
        yield {
          problem: 'no-entry',
          text: `the directory has no entry of the consumer ${part}: ${unseen}`,
          fix,
          followUp: FIND_MISSED,
        };
      else yield { problem: 'bad-entry', text: `${fault} Until then ${unseen}`, fix, followUp: FIND_MISSED };
    }),
  );
}

/** The parameters of other owners on the bus that cannot be used. */
export function busFaultChecks(faults: readonly BusFault[]): PartCheck[] {
  return faults.map(({ parameter, text }) =>
    check(parameter, 'surroundings', async function* () {
      const until = 'Until then nothing reads what it describes. The command names the stack that created it';
      yield { problem: 'bad-entry', text: `${text} ${until}`, fix: stackNameOf(parameter) };
    }),
  );
}
