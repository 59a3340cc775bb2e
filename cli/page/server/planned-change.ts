import { errorMessage, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { effectsDigest } from '../../../lambdas/runtime/inbox/started-effects.ts';
import { type OperatorChange, run } from '../../changes/change.ts';
import { discard } from '../../changes/discard/discard.ts';
import { effectsOf } from '../../changes/discard/discard-plan.ts';
import { redrive } from '../../changes/redrive/redrive.ts';
import { repairKey } from '../../changes/repair/audit-repair.ts';
import { repair } from '../../changes/repair/repair.ts';
import { resend } from '../../changes/resend/resend.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { checkedWord, effectText } from '../../deployment/effects.ts';
import { choiceWords } from '../../reports/dead-letters/choice.ts';
import { durationArgument } from '../../terminal/arguments.ts';
import type { ChangeOptions, PlannedVerdicts } from '../../terminal/change.ts';
import { shell } from '../../terminal/shell.ts';
import type { Report } from '../../terminal/terminal.ts';
import type { PlanDocument, PlanDocuments, PlanRequest } from './protocol.ts';

/** The change that a plan describes. */
export interface PlannedChange {
  readonly kind: PlanRequest['kind'];
  /** The runs of one lock exclude each other: the dead-letter source, or the repair. */
  readonly lock: string;
  /** The verdicts of the plan, by the id of everything that it changes. */
  readonly planned: PlannedVerdicts;
  /** The text that the operator types. */
  readonly confirmation: string;
  /** The effects that the operator must check: see `DiscardChoice`. */
  readonly effects: readonly string[];
  /** The command of a terminal that makes the same change, up to its reason. */
  readonly terminal: readonly string[];
  /** Makes the change, bound to the plan. */
  apply(deployment: Deployment, reason: string): Promise<Report<PlanDocument['document']>>;
}

type ChangeKind = PlanRequest['kind'];
type RequestOf<Of extends ChangeKind> = Extract<PlanRequest, { readonly kind: Of }>;

/** A plan that the page has shown. */
interface DescribedPlan<Of extends ChangeKind> {
  readonly request: RequestOf<Of>;
  readonly document: PlanDocuments[Of];
  readonly planned: PlannedVerdicts;
  /** The Mailroom's stack. */
  readonly stack: string;
}

/** A kind of change, as the page shows it. */
interface KindOfChange<Of extends ChangeKind> {
  /** The verdict on each part of a plan; those of {@link ACTED_ON} are changed. */
  verdicts(document: PlanDocuments[Of]): readonly (readonly [id: string, verdict: string | null])[];
  lock(request: RequestOf<Of>): string;
  confirmation(shown: DescribedPlan<Of>): string;
  terminal(shown: DescribedPlan<Of>): readonly string[];
  /** @default none */
  effects?(shown: DescribedPlan<Of>): readonly string[];
}

/** The options of its command: of the plan, and of the change that is bound to what was shown. */
interface OptionsOf<Of extends ChangeKind, Options> {
  planned(request: RequestOf<Of>): Options;
  bound(shown: DescribedPlan<Of>): Options;
}

/** The same with its change. */
interface PageChange<Of extends ChangeKind> extends KindOfChange<Of> {
  plan(deployment: Deployment, request: RequestOf<Of>): Promise<Report<PlanDocuments[Of]>>;
  apply(deployment: Deployment, shown: DescribedPlan<Of>, reason: string): Promise<Report<PlanDocuments[Of]>>;
}

function pageChange<Of extends ChangeKind, Options extends ChangeOptions, Plan, Made>(
  change: OperatorChange<Options, Plan, Made, PlanDocuments[Of]>,
  { planned, bound, ...kind }: KindOfChange<Of> & OptionsOf<Of, NoInfer<Options>>,
): PageChange<Of> {
  return {
    ...kind,
    plan: (deployment, request) => run(change, deployment, planned(request)),
    apply: (deployment, shown, reason) =>
      run(change, deployment, { ...bound(shown), apply: true, reason }, shown.planned),
  };
}

/** More ids than these are not written into a command to paste, if a cause selects the same dead letters. */
const PASTED_IDS_MAX = 20;

/** A repair covers this much more than its plan did: the range ends now, and its beginning must not move past an event. */
const REPAIR_EXTRA_MINUTES = 10;

/** The file of a resend's new data in a command to paste. */
const DATA_FILE = 'data.json';

const count = ({ planned }: Pick<DescribedPlan<ChangeKind>, 'planned'>) => String(planned.size);

/** The changes of the page. */
const CHANGES: { readonly [Of in ChangeKind]: PageChange<Of> } = {
  redrive: pageChange(redrive, {
    planned: (request) => request,
    bound: ({ request: { source }, planned }) => ({ source, ids: [...planned.keys()] }),
    verdicts: ({ deadLetters }) => deadLetters.map(({ id, verdict }) => [id, verdict]),
    lock: ({ source }) => source,
    confirmation: count,
    terminal: (shown) => deadLetterWords('redrive', shown),
  }),
  discard: pageChange(discard, {
    planned: (request) => request,
    bound: (shown) => {
      const { source, reject = false, effectsChecked = false } = shown.request;
      const checked = effectsChecked && effectsDigest(checkedEffects(shown));
      return { source, ids: [...shown.planned.keys()], reject, effectsChecked: checked };
    },
    verdicts: ({ deadLetters }) => deadLetters.map(({ id, outcome }) => [id, outcome]),
    lock: ({ source }) => source,
    confirmation: ({ stack }) => stack,
    terminal: (shown) => {
      const { reject = false, effectsChecked = false } = shown.request;
      const checked = effectsChecked ? [checkedWord(checkedEffects(shown))] : [];
      return [...deadLetterWords('discard', shown), ...(reject ? ['--reject'] : []), ...checked];
    },
    effects: ({ request, document }) => effectsOf(document.deadLetters, request.reject).map(effectText),
  }),
  resend: pageChange(resend, {
    planned: resendOptions,
    bound: ({ request }) => resendOptions(request),
    verdicts: ({ newEventId, verdict }) => [[newEventId, verdict]],
    lock: ({ source }) => source,
    confirmation: ({ document }) => document.consumer,
    terminal: ({ request: { source, id } }) => ['dlq', 'resend', source, id, '--data', DATA_FILE],
  }),
  repair: pageChange(repair, {
    planned: (request) => ({ since: sinceOf(request), repair: true }),
    bound: ({ request }) => ({ since: repairMinutes(request) * MINUTE_MS, repair: true }),
    verdicts: ({ repair: planned }) =>
      (planned?.events ?? []).map((event) => [repairKey(event), event.outcome]),
    lock: () => 'audit --repair',
    confirmation: count,
    terminal: ({ request }) => ['audit', '--since', `${repairMinutes(request)}m`, '--repair'],
  }),
};

const changeOf = ({ kind }: PlanRequest) => CHANGES[kind] as PageChange<ChangeKind>;

/** Plans a change: a run of its command without `--apply`. @throws `BAD_ARGUMENT` */
export async function planOf(deployment: Deployment, request: PlanRequest): Promise<Report<PlanDocument>> {
  const report = await changeOf(request).plan(deployment, request);
  return { ...report, json: { kind: request.kind, document: report.json } as PlanDocument };
}

/** Reads the change that a plan describes from its document. */
export function plannedChange(
  { directory }: Pick<Deployment, 'directory'>,
  request: PlanRequest,
  { document }: PlanDocument,
): PlannedChange {
  const change = changeOf(request);
  const acted = change.verdicts(document).filter((one): one is [string, string] => ACTED_ON.has(one[1]));
  const planned = new Map(acted);
  const shown = { request, document, planned, stack: directory.mailroom.stack };
  return {
    kind: request.kind,
    planned,
    lock: change.lock(request),
    confirmation: change.confirmation(shown),
    effects: change.effects?.(shown) ?? [],
    terminal: change.terminal(shown),
    apply: (deployment, reason) => change.apply(deployment, shown, reason),
  };
}

/** The verdicts that a change acts on. */
const ACTED_ON: ReadonlySet<string | null> = new Set([
  'runs',
  'handled',
  'discard',
  'discard-replacement',
  'reject',
  'send',
  'make-due',
  'list',
]);

/** The words of a command that changes the dead letters of a plan. */
function deadLetterWords(
  command: string,
  { request, planned }: Pick<DescribedPlan<'redrive' | 'discard'>, 'request' | 'planned'>,
) {
  const { source, cause } = request;
  const ids = [...planned.keys()];
  const isLong = ids.length > PASTED_IDS_MAX && cause !== undefined;
  // A plan that changes nothing names what it was asked for.
  const chosen = isLong ? { cause } : ids.length > 0 ? { ids } : request;
  return ['dlq', command, source, ...choiceWords(chosen)];
}

/** The effects of the discarded messages, as the page has shown them: the operator's check covers only these. */
function checkedEffects({ request, document, planned }: DescribedPlan<'discard'>) {
  return effectsOf(
    document.deadLetters.filter(({ id }) => planned.has(id)),
    request.reject,
  );
}

function resendOptions({ source, id, data }: RequestOf<'resend'>) {
  return { source, id, data: DATA_FILE, readData: async () => JSON.stringify(data) };
}

function repairMinutes(request: RequestOf<'repair'>): number {
  return Math.ceil(sinceOf(request) / MINUTE_MS) + REPAIR_EXTRA_MINUTES;
}

/** @returns milliseconds @throws `BAD_ARGUMENT` */
function sinceOf({ since }: { readonly since: string }): number {
  try {
    return durationArgument(since);
  } catch (error) {
    throw new MailroomError('BAD_ARGUMENT', `"since" is "${since}". ${errorMessage(error)}`);
  }
}

/** The command to paste. @param reason - @default the placeholder, which the command refuses */
export function terminalCommand(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  { terminal }: Pick<PlannedChange, 'terminal'>,
  reason = '…',
): string {
  return commandLine(shell`${terminal} --apply --reason ${reason}`);
}
