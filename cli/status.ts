import { Command } from 'commander';
import { withSession } from './command.ts';
import { EXIT } from './exit-code.ts';
import type { Io } from './io.ts';

/** `mailroom status`. */
export function statusCommand(io: Io): Command {
  return new Command('status').description('Shows what waits and what is dead.').action(
    withSession(io, async ({ output, directory }) => {
      output.result(directory, () => directory.mailroom.stack);
      return EXIT.ok;
    }),
  );
}
