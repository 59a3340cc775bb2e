import { Command } from 'commander';
import type { Io } from '../terminal/io.ts';
import { checkCommand, exportCommand } from './events-catalog.ts';
import { listCommand } from './events-list.ts';
import { republishCommand } from './events-republish.ts';

/** `mailroom events`. */
export function eventsCommand(io: Io): Command {
  return new Command('events')
    .description('Lists events of the outbox, publishes one again, and exports and checks catalogs.')
    .addCommand(listCommand(io))
    .addCommand(republishCommand(io))
    .addCommand(exportCommand(io))
    .addCommand(checkCommand(io));
}
