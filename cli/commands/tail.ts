import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import type { OutboxReaderDeps } from '../deployment/published-events.ts';
import { readSweepState } from '../deployment/rows-reader.ts';
import { createEventCursor } from '../reports/tail/event-cursor.ts';
import { createFollower, type FollowerDeps, type TailedEvent } from '../reports/tail/event-follower.ts';
import { durationArgument } from '../terminal/arguments.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { clipped } from '../terminal/output.ts';
import { paint } from '../terminal/paint.ts';
import { prose } from '../terminal/prose.ts';
import { reportOf, type Terminal } from '../terminal/terminal.ts';
import { acting } from './command.ts';

/** The interval of the reads. */
const EVERY_MS = 2_000;

/** `mailroom tail`. */
export function tailCommand(io: Io): Command {
  return new Command('tail')
    .description(
      'Follows new events until Ctrl-C: a line for each event, and another when a consumer changes its state. It reads every 2 ' +
        'seconds, at most 50 unfinished events at a time.',
    )
    .addOption(
      new Option('--since <duration>', 'begin in the past, e.g. 5m')
        .argParser(durationArgument)
        .default(0, 'now'),
    )
    .action(
      acting<{ readonly since: number }>(io, async (deployment, { since }) => {
        const { directory, table, stored, clock, terminal } = deployment;
        const { shards } = await readSweepState(directory, table);
        const step = createTail({ directory, stored, shards }, clock.now() - since);
        if (!terminal.json)
          terminal.say(`Following the outbox of ${directory.mailroom.stack}. Ctrl-C stops.`);
        for (;;) {
          await show(terminal, await step(clock.now()));
          const continues = await sleep(EVERY_MS, true, { signal: terminal.signal }).catch(() => false);
          if (!continues) return EXIT.ok;
        }
      }),
    );
}

async function show(terminal: Terminal, { events, skipped, more }: TailStep): Promise<void> {
  for (const event of events) await terminal.print(reportOf(event, event, tailLine));
  if (skipped > 0 || more)
    terminal.say(
      `Too many events to follow: ${more ? 'at least ' : ''}${skipped} not shown. events list and audit count all.`,
    );
}

/** The characters of an id that are shown: its time and twelve random bits, which `why` completes. */
const ID_CHARACTERS = 18;

/** A line of `tail`: `14:00:03 01a1fe32-7358-7e75 OrderPlaced  payments processed, inventory waiting`. */
export function tailLine({ eventId, at, type, status, consumers }: TailedEvent): string {
  const time = new Date(at).toISOString().slice(11, 19);
  const states = Object.entries(consumers).map(([name, state]) => `${name} ${colored(state)}`);
  const parts = status === 'PUBLISHED' ? states : [paint.yellow(status)];
  return prose(
    `${time} ${eventId.slice(0, ID_CHARACTERS)} ${paint.bold(clipped(type ?? '?'))}  ${parts.join(', ') || 'no consumer'}`,
    ID_CHARACTERS + 10,
  );
}

function colored(state: string): string {
  if (state === 'processed') return paint.green(state);
  return ['failed', 'rejected', 'unreadable', 'abandoned'].includes(state) ? paint.red(state) : state;
}

/** The events that changed since the step before, and those that were left out because there are too many. */
export interface TailStep {
  readonly events: readonly TailedEvent[];
  readonly skipped: number;
  /** More than `skipped` were left out. */
  readonly more: boolean;
}

/** Dependencies of {@link createTail}. */
export interface TailDeps extends OutboxReaderDeps, Pick<FollowerDeps, 'directory'> {}

/**
 * Follows new events until every consumer has finished them. Each step returns the events that are new or whose state changed: see
 * `createFollower`.
 *
 * @param since - epoch milliseconds
 */
export function createTail(deps: TailDeps, since: number): (now: number) => Promise<TailStep> {
  const read = createEventCursor(deps, since);
  const follow = createFollower(deps);
  return async (now) => {
    const { rows, more } = await read(now);
    const { events, skipped } = await follow(rows, now);
    return {
      events: events.map(({ eventId, at, type, source, status, consumers }) => ({
        eventId,
        at,
        type,
        source,
        status,
        consumers,
      })),
      skipped,
      more,
    };
  };
}
