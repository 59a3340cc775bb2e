import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import type { Deployment } from '../deployment/deployment.ts';
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
    .description('Shows what waits, what failed and what is dead. Exits with 1 if action is required.')
    .option('--watch', 'refresh every 2 seconds until Ctrl-C')
    .action(
      acting<{ readonly watch?: boolean }>(io, async (deployment, options) => {
        const { terminal } = deployment;
        const status = createStatusReader(deployment);
        let report = await status.read();
        if (options.watch !== true) await terminal.print(printed(deployment, report));
        else {
          const redraws = io.outIsTerminal && !terminal.json;
          if (redraws) io.out(CLEAR);
          for (; ; report = await status.read()) {
            if (redraws) io.out(REDRAW);
            await terminal.print(printed(deployment, report, io.outSize()));
            const continues = await sleep(WATCH_EVERY_MS, true, { signal: io.signal }).catch(() => false);
            if (!continues) break;
          }
        }
        return report.ok ? EXIT.ok : EXIT.attention;
      }),
    );
}

/** @param size - of the terminal that the text must fit @default the text is printed whole */
function printed(deployment: Deployment, report: StatusReport, size?: TerminalSize): Report {
  return reportOf(statusJson(report, deployment), report, (seen) => {
    const text = statusText(seen, deployment);
    return size === undefined ? text : fitted(text, size);
  });
}
