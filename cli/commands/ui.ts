import { Command, InvalidArgumentError, Option } from 'commander';
import type { Deployment } from '../deployment/deployment.ts';
import { type Place, placeOf, placeText } from '../deployment/place.ts';
import { hasBrowser, openInBrowser, tunnelOf } from '../page/server/browser.ts';
import { readPolicy } from '../page/server/read-policy.ts';
import { IDLE_MS, startUi } from '../page/server/server.ts';
import { durationArgument } from '../terminal/arguments.ts';
import { EXIT, type ExitCode, type Io } from '../terminal/io.ts';
import { paint } from '../terminal/paint.ts';
import { prose } from '../terminal/prose.ts';
import { reportOf } from '../terminal/terminal.ts';
import { duration } from '../terminal/times.ts';
import { acting } from './command.ts';

/** A redirect file that a person has to open or to copy is valid for this time. */
const BY_HAND_MS = 10 * 60_000;

interface UiOptions {
  readonly allowChanges?: boolean;
  readonly payload?: boolean;
  readonly port?: number;
  /** False with `--no-open`. */
  readonly open: boolean;
  /** Milliseconds. */
  readonly idle: number;
  readonly policy?: boolean;
}

/** The parts of the command that a test replaces. */
interface Browser {
  /** Opens a file. @default the user's browser */
  readonly browse?: (file: string) => Promise<void>;
}

/** `mailroom ui`. */
export function uiCommand(io: Io & Browser): Command {
  return new Command('ui')
    .description(
      'Opens the web console, which shows events as they move, where they are stuck and how to repair that. Serves it on ' +
        '127.0.0.1 until Ctrl-C. Read-only without --allow-changes.',
    )
    .option('--allow-changes', 'let the web console redrive, discard, resend and repair, each after a plan')
    .option('--payload', 'let the web console show payloads')
    .addOption(new Option('--port <number>', 'the port (default: a free one)').argParser(portArgument))
    .option('--no-open', 'open no browser; print the file that opens the web console')
    .addOption(
      new Option('--idle <duration>', 'stop after this time without use')
        .argParser(durationArgument)
        .default(IDLE_MS, '30m'),
    )
    .option('--policy', 'print an IAM policy that allows what the read-only web console calls, and stop')
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom ui --stage prod --profile read-only
  $ npx cdk-mailroom ui --stage dev --allow-changes
  $ npx cdk-mailroom ui --policy > policy.json`,
    )
    .action(
      acting<UiOptions>(io, (deployment, options) =>
        options.policy === true ? printPolicy(deployment) : serve(deployment, options, io),
      ),
    );
}

async function printPolicy(deployment: Deployment): Promise<ExitCode> {
  const [, partition] = (await deployment.operator()).split(':');
  const policy = readPolicy(deployment.directory, await placeOf(deployment), partition);
  await deployment.terminal.print(reportOf(policy, policy, (seen) => JSON.stringify(seen, undefined, 2)));
  return EXIT.ok;
}

async function serve(deployment: Deployment, options: UiOptions, io: Io & Browser): Promise<ExitCode> {
  const { terminal, isLocal } = deployment;
  const { allowChanges: allowsChanges = false, payload: showsPayloads = false, port, idle: idleMs } = options;
  const browse = io.browse ?? (hasBrowser(io.env) ? openInBrowser : undefined);
  const opens = options.open && !terminal.json && browse !== undefined;
  const place = await placeOf(deployment);
  const ui = await startUi({
    ...{ deployment, allowsChanges, showsPayloads, port, idleMs },
    ...(opens ? {} : { redirectMs: BY_HAND_MS }),
  });
  const { url, redirectFile } = ui;
  const started = { ...place, url, redirectFile, allowsChanges, showsPayloads };
  await terminal.print(reportOf(started, started, (seen) => startText(seen, { idleMs, isLocal })));
  const show = (file: string) => showPage(deployment, { url, file, env: io.env }, opens ? browse : undefined);
  await show(redirectFile);
  const forget = io.onLine?.(() => void ui.newRedirect().then(show));
  const why = await ui.ended;
  forget?.();
  terminal.say(
    why === 'idle'
      ? `Stopped: the web console was not used for ${duration(idleMs)}. To wait longer: --idle 4h.`
      : 'Stopped.',
  );
  return EXIT.ok;
}

/** Opens the page, or prints how to open it. @param browse - absent if no browser may be opened */
async function showPage(
  { terminal }: Deployment,
  { url, file, env }: { readonly url: string; readonly file: string; readonly env: Io['env'] },
  browse: Browser['browse'],
): Promise<void> {
  if (terminal.json) return;
  const opened = browse?.(file).then(
    () => true,
    () => false,
  );
  if (await opened) return terminal.say('Opened in your browser.');
  const tunnel = tunnelOf(env, { port: new URL(url).port, file });
  const lines =
    tunnel === undefined
      ? [`To open the web console, open this file in a browser on this machine: ${file}`]
      : [
          'To open the web console on your machine, run there, and open the copied file:',
          `  ${tunnel.forward}`,
          `  ${tunnel.copy}`,
        ];
  for (const line of lines) terminal.say(line);
  terminal.say(`The file opens the web console once, within ${duration(BY_HAND_MS)}.`);
}

/** The cost of reading while a tab shows the page: nothing moves, or 20 unfinished events a second (docs/console.md). */
const USD_PER_HOUR = '0.004 to 0.03';

interface Started extends Place {
  readonly url: string;
  readonly allowsChanges: boolean;
  readonly showsPayloads: boolean;
}

function startText(
  { url, allowsChanges, showsPayloads, ...place }: Started,
  { idleMs, isLocal }: { readonly idleMs: number; readonly isLocal: boolean },
): string {
  const mode = allowsChanges ? paint.yellow('Changes are allowed') : paint.green('Read-only');
  return [
    `${paint.bold('Mailroom')} at ${url}`,
    placeText(place),
    prose(
      `${mode}; payloads are ${showsPayloads ? 'shown' : 'hidden'}. ` +
        (isLocal ? '' : `While a tab shows it, reading costs ${USD_PER_HOUR} USD an hour. `) +
        `Stops after ${duration(idleMs)} without use.`,
    ),
    'Enter opens another tab, Ctrl-C stops.',
  ].join('\n');
}

function portArgument(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new InvalidArgumentError('Expected a port from 1 to 65535.');
}
