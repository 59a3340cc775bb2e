import { openDeployment } from '../cli/deployment/deployment.ts';
import { hasBrowser, openInBrowser } from '../cli/page/server/browser.ts';
import { type RunningUi, startUi } from '../cli/page/server/server.ts';
import { EXIT, type Io } from '../cli/terminal/io.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import type { Engine } from '../localstack/engine.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import { createFaults } from './faults.ts';
import { createPanel, type RunPanel } from './panel.ts';

/** A person opens the redirect file by hand within this time. */
const BY_HAND_MS = 10 * 60_000;

/** The page stays open for this long without use. */
const IDLE_MS = 4 * 3_600_000;

/** A run without a number of orders places them for at most this long: 900 orders, which the receipt can still read back. */
export const RUN_MAX_MS = 15 * 60_000;

/** The page of a demo. */
export interface DemoPage {
  readonly ui: RunningUi;
  readonly panel: RunPanel;
}

/** Options of {@link openDemoPage}. */
interface DemoPageOptions {
  readonly engine: Engine;
  readonly outputs: Outputs;
  /** The number of orders of a run. @default orders for {@link RUN_MAX_MS} */
  readonly orders: number | undefined;
  /** Opens a browser; otherwise the path of the file that opens the page is printed. */
  readonly opens: boolean;
  readonly steps: Pick<StepPrinter, 'say'>;
  readonly signal: AbortSignal;
}

/**
 * Starts the page and opens it. On the demo's own engine it allows changes, shows payloads and has the panel of faults; an engine that
 * ran before may hold other data, so there the page is read-only.
 */
export async function openDemoPage(options: DemoPageOptions): Promise<DemoPage> {
  const { engine, outputs, orders, opens, steps, signal } = options;
  const { endpoint } = engine;
  const deployment = await openDeployment(quietIo(signal), { endpoint, json: true });
  const faults = engine.startedHere
    ? await createFaults({ deployment, outputs, endpoint, signal })
    : undefined;
  const panel = createPanel({ orders, maxMs: RUN_MAX_MS, faults, onError: steps.say });
  const ui = await startUi({
    deployment,
    allowsChanges: engine.startedHere,
    showsPayloads: engine.startedHere,
    idleMs: IDLE_MS,
    redirectMs: BY_HAND_MS,
    demo: panel,
  });
  const show = (file: string) => showPage(file, { opens, steps });
  steps.say(`The web console is at ${ui.url} and stays until Ctrl-C. Enter opens another tab.`);
  steps.say('The first order is placed when the web console is open.');
  await show(ui.redirectFile);
  if (process.stdin.isTTY) openAnotherOnEnter(ui, show);
  return { ui, panel };
}

async function showPage(
  file: string,
  { opens, steps }: Pick<DemoPageOptions, 'opens' | 'steps'>,
): Promise<void> {
  const isOpen = opens && hasBrowser(process.env) && (await isOpened(file));
  if (!isOpen) steps.say(`To open it, open this file in a browser on this machine: ${file}`);
}

/** A reload loses the key of a tab, so another tab needs another file. */
function openAnotherOnEnter(ui: RunningUi, show: (file: string) => Promise<void>): void {
  const open = (): void => void ui.newRedirect().then(show, () => {}); // it has stopped
  process.stdin.on('data', open);
  void ui.ended.then(() => {
    process.stdin.off('data', open);
    process.stdin.pause(); // otherwise stdin keeps the process alive
  });
}

async function isOpened(file: string): Promise<boolean> {
  return await openInBrowser(file).then(
    () => true,
    () => false,
  );
}

/** The commands of the page print nothing to the terminal of the demo. */
export function quietIo(signal: AbortSignal): Io {
  return {
    env: {},
    outIsTerminal: false,
    errIsTerminal: false,
    outSize: () => undefined,
    out: () => {},
    err: () => {},
    signal,
    exitCode: EXIT.ok,
  };
}
