import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import type { Deployment } from '../deployment/deployment.ts';
import { createStatusReader } from '../reports/status/status-reader.ts';
import type { StatusReport } from '../reports/status/status-report.ts';
import { statusJson, statusText } from '../reports/status/status-text.ts';
import { EXIT, type Io, type TerminalSize } from '../terminal/io.ts';
import { fitted } from '../terminal/output.ts';
import { withDeployment } from './command.ts';

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
      withDeployment(io, async (deployment, options: { readonly watch?: boolean }) => {
        const status = createStatusReader(deployment);
        let report = await status.read();
        if (options.watch !== true) show(deployment, report);
        else {
          if (io.outIsTerminal && !deployment.output.json) io.out(CLEAR);
          for (; ; report = await status.read()) {
            if (io.outIsTerminal && !deployment.output.json) io.out(REDRAW);
            show(deployment, report, io.outSize());
            const continues = await sleep(WATCH_EVERY_MS, true, { signal: io.signal }).catch(() => false);
            if (!continues) break;
          }
        }
        return report.ok ? EXIT.ok : EXIT.attention;
      }),
    );
}

/** @param size - of the terminal that the text must fit @default the text is printed whole */
function show(deployment: Deployment, report: StatusReport, size?: TerminalSize): void {
  deployment.output.result(statusJson(report, deployment), report, (seen) => {
    const text = statusText(seen, deployment);
    return size === undefined ? text : fitted(text, size);
  });
}
