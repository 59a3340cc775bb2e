import type { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { Migrated } from '../../lambdas/runtime/store/sql/schema-version.ts';
import { databaseUrl } from '../deployment/open-database.ts';
import type { GlobalOptions } from '../deployment/target.ts';
import { reasonArgument } from '../terminal/arguments.ts';
import type { Io } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { prose } from '../terminal/prose.ts';
import { createTerminal, type Report, reportOf } from '../terminal/terminal.ts';

/** A database that a command has opened. */
interface Opened {
  readonly place: string;
  end(): Promise<void>;
}

/** A kind of database, as its commands open it. */
export interface CommandDatabase<Open extends Opened> {
  /** The variables that hold its address, in order. The first one with an address of its kind is used, else the first one. */
  readonly variables: readonly string[];
  /** The beginning of its addresses. */
  readonly scheme: RegExp;
  /** @param env - the environment, which may hold a password */
  open(url: string, env: Io['env']): Promise<Open>;
  /** The code of an error of its address, and the form of that. */
  readonly bad: readonly [code: 'BAD_POSTGRES' | 'BAD_MYSQL', form: string];
}

/** An action of commander that runs on the database that the options select, and closes it. */
export function reportingOn<Open extends Opened, Options extends GlobalOptions>(
  io: Io,
  { variables, scheme, open: openAt, bad }: CommandDatabase<Open>,
  run: (open: () => Promise<Open>, options: Options) => Promise<Report>,
  ...names: readonly (keyof Options & string)[]
): (...received: unknown[]) => Promise<void> {
  return async (...received) => {
    const command = received.at(-1) as Command;
    const given = Object.fromEntries(names.map((name, index) => [name, received[index]]));
    const options = { ...command.optsWithGlobals<Options>(), ...given };
    let opened: Open | undefined;
    const open = async () => {
      const url = databaseUrl(options.database, io.env, variables, scheme);
      if (url === undefined) throw noDatabase(bad, variables);
      opened = await openAt(url, io.env);
      return opened;
    };
    try {
      const report = await run(open, options);
      await createTerminal(io, options.json ?? false).print(report);
      io.exitCode = report.exitCode;
    } finally {
      await opened?.end();
    }
  };
}

function noDatabase(
  [code, form]: CommandDatabase<Opened>['bad'],
  variables: readonly string[],
): MailroomError {
  return new MailroomError(
    code,
    `No database was given. Pass --database ${form}, or set ${variables.join(' or ')}.`,
  );
}

/** The report of a migration. @param next - the next step after a change */
export function migratedReport(place: string, { from, to }: Migrated, next: string): Report {
  return reportOf({ database: place, from, to }, { place, from, to }, (seen) =>
    prose(
      seen.from === seen.to
        ? `Database ${seen.place}: the schema mailroom has version ${seen.to}. Nothing was changed.`
        : `Database ${seen.place}: migrated the schema mailroom from version ${seen.from} to ${seen.to}. ${next}`,
    ),
  );
}

/** The statements of the migrations for another tool. */
export function printedSql(files: readonly { readonly version: number; readonly sql: string }[]): Report {
  return reportOf({ migrations: files }, undefined, () =>
    files
      .map(({ sql }) => sql)
      .join('\n')
      .trimEnd(),
  );
}

interface RequeueOptions extends GlobalOptions {
  readonly eventIds: readonly string[];
  readonly reason: string;
}

/**
 * Adds the command that requeues DEAD events.
 *
 * @param needs - the rights that it needs, as the end of a sentence
 * @param requeue - returns the ids of the events that it has changed; `null`: all DEAD events
 */
export function addRequeue<Open extends Opened>(
  parent: Command,
  io: Io,
  kind: CommandDatabase<Open>,
  needs: string,
  requeue: (open: Open, eventIds: readonly string[] | null, reason: string) => Promise<readonly string[]>,
): void {
  parent
    .command('requeue')
    .description(
      `Requeues DEAD events: a relay publishes them, with their attempts counted from 0. Needs ${needs}.`,
    )
    .argument('[eventIds...]', 'the events; none: all DEAD events')
    .requiredOption('--reason <text>', 'why; stored with the operation', reasonArgument)
    .action(
      reportingOn<Open, RequeueOptions>(
        io,
        kind,
        async (open, { eventIds, reason }) => {
          const opened = await open();
          const wrong = eventIds.find((id) => !isEventId(id));
          if (wrong !== undefined)
            throw new MailroomError(
              'BAD_EVENT_ID',
              `"${wrong}" is not an event id; expected a UUIDv7 in lowercase.`,
            );
          const ids = await requeue(opened, eventIds.length === 0 ? null : eventIds, reason);
          return requeuedReport(opened.place, eventIds, ids);
        },
        'eventIds',
      ),
    );
}

function requeuedReport(place: string, eventIds: readonly string[], ids: readonly string[]): Report {
  const others = eventIds.filter((id) => !ids.includes(id));
  const json = { database: place, requeued: ids, notDead: others };
  return reportOf(json, { place, others }, (seen) =>
    [
      prose(`Database ${seen.place}: requeued ${many(ids.length, 'event')}.`),
      ...(seen.others.length === 0 ? [] : [prose(`Not DEAD: ${seen.others.join(', ')}.`)]),
    ].join('\n'),
  );
}
