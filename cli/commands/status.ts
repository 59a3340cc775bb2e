import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { readAcks } from '../reports/findings/acknowledgements.ts';
import type { CommandLines } from '../reports/findings/findings.ts';
import {
  busText,
  createBusReader,
  isNeighborOpen,
  type NeighborStatus,
} from '../reports/status/bus-status.ts';
import { createStatusReader } from '../reports/status/status-reader.ts';
import type { StatusReport } from '../reports/status/status-report.ts';
import { statusJson, statusText } from '../reports/status/status-text.ts';
import { EXIT, type Io, type TerminalSize } from '../terminal/io.ts';
import { fitted } from '../terminal/output.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { acting } from './command.ts';

/** The interval of `--watch`. */
const WATCH_EVERY_MS = 2_000;

/** Moves the cursor to the top left corner and clears everything below. */
const REDRAW = '\u001b[H\u001b[J';
const CLEAR = '\u001b[2J';

/** `mailroom status`. */
export function statusCommand(io: Io): Command {
  return new Command('status')
    .description(
      'Shows what waits, what failed and what is dead. Exits with 1 if action is required here, or at another Mailroom on the bus.',
    )
    .option('--watch', 'refresh every 2 seconds until Ctrl-C')
    .action(
      acting<{ readonly watch?: boolean }>(io, async (deployment, options) => {
        const { terminal } = deployment;
        const status = createStatusReader(deployment, options.watch === true);
        const bus = createBusReader(deployment, options.watch === true);
        const read = async (): Promise<Report> => {
          const [report, neighbors, acks] = await Promise.all([
            status.read(),
            bus(),
            readAcks(deployment.stored, deployment.clock.now()),
          ]);
          return printed(
            { ...deployment, acks },
            { report, neighbors },
            options.watch ? io.outSize() : undefined,
          );
        };
        const { stack } = deployment.directory.mailroom;
        if (!terminal.json) terminal.progress(`Reading the status of ${stack} in ${deployment.region}`);
        let shown = await read();
        if (options.watch !== true) await terminal.print(shown);
        else {
          const redraws = io.outIsTerminal && !terminal.json;
          if (redraws) io.out(CLEAR);
          for (; ; shown = await read()) {
            if (redraws) io.out(REDRAW);
            await terminal.print(shown);
            const continues = await sleep(WATCH_EVERY_MS, true, { signal: io.signal }).catch(() => false);
            if (!continues) break;
          }
        }
        return shown.exitCode;
      }),
    );
}

/** @param size - of the terminal that the text must fit @default the text is printed whole */
function printed(
  lines: CommandLines,
  { report, neighbors }: { readonly report: StatusReport; readonly neighbors: readonly NeighborStatus[] },
  size?: TerminalSize,
): Report {
  const json = { ...statusJson(report, lines), neighbors };
  const subject = { report, neighbors, acks: lines.acks ?? [] };
  const text = (seen: typeof subject) => {
    const others = seen.neighbors
      .filter(isNeighborOpen)
      .map(({ stack, parameter }) => stack ?? parameter ?? '');
    const own = statusText(seen.report, { ...lines, acks: seen.acks }, others);
    const whole = [own, ...busText(seen.neighbors)].join('\n\n');
    return size === undefined ? whole : fitted(whole, size);
  };
  return reportOf(json, subject, text, json.ok && !neighbors.some(isNeighborOpen) ? EXIT.ok : EXIT.attention);
}
