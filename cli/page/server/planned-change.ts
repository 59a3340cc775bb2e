import { errorMessage, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isObject } from '../../../lambdas/runtime/base/json.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { effectsDigest } from '../../../lambdas/runtime/inbox/started-effects.ts';
import { effectsOf } from '../../changes/discard/discard-plan.ts';
import { repairKey } from '../../changes/repair/audit-repair.ts';
import { audit } from '../../commands/audit.ts';
import { discardDeadLetters } from '../../commands/dlq-discard.ts';
import { redrive } from '../../commands/dlq-redrive.ts';
import { resendDeadLetter } from '../../commands/dlq-resend.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { checkedWord, effectText } from '../../deployment/effects.ts';
import { choiceWords } from '../../reports/dead-letters/choice.ts';
import { durationArgument, reasonArgument } from '../../terminal/arguments.ts';
import type { PlannedVerdicts } from '../../terminal/change.ts';
import { shell } from '../../terminal/shell.ts';
import type { Report } from '../../terminal/terminal.ts';
import type { ApplyRequest, PlanDocument, PlanRequest } from './protocol.ts';

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

/** More ids than these are not written into a command to paste, if a cause selects the same dead letters. */
const PASTED_IDS_MAX = 20;

/** A repair covers this much more than its plan did: the range ends now, and its beginning must not move past an event. */
const REPAIR_EXTRA_MINUTES = 10;

/** The file of a resend's new data in a command to paste. */
const DATA_FILE = 'data.json';

/** Plans a change: a run of its command without `--apply`. @throws `BAD_ARGUMENT` */
export async function planOf(deployment: Deployment, request: PlanRequest): Promise<Report<PlanDocument>> {
  const { kind } = request;
  switch (kind) {
    case 'redrive':
      return ofKind(kind, await redrive(deployment, request));
    case 'discard':
      return ofKind(kind, await discardDeadLetters(deployment, request));
    case 'resend': {
      const data = async () => JSON.stringify(request.data);
      return ofKind(kind, await resendDeadLetter(deployment, { ...request, data: DATA_FILE }, data));
    }
    case 'repair':
      return ofKind(kind, await audit(deployment, { since: sinceOf(request), repair: true }));
  }
}

function ofKind<Kind extends PlanRequest['kind'], Document>(kind: Kind, report: Report<Document>) {
  return { ...report, json: { kind, document: report.json } };
}

/** Reads the change that a plan describes from its document. */
export function plannedChange(
  { directory }: Pick<Deployment, 'directory'>,
  request: PlanRequest,
  plan: PlanDocument,
): PlannedChange {
  const { kind } = request;
  const planned = verdictsOf(plan);
  const count = String(planned.size);
  if (kind === 'repair') {
    const minutes = Math.ceil(sinceOf(request) / MINUTE_MS) + REPAIR_EXTRA_MINUTES;
    return {
      kind,
      lock: 'audit --repair',
      planned,
      confirmation: count,
      effects: [],
      terminal: ['audit', '--since', `${minutes}m`, '--repair'],
      apply: (deployment, reason) =>
        audit(deployment, { since: minutes * MINUTE_MS, repair: true, apply: true, reason }, planned),
    };
  }
  const { source } = request;
  if (kind === 'resend')
    return {
      kind,
      lock: source,
      planned,
      confirmation: plan.kind === 'resend' ? plan.document.consumer : '',
      effects: [],
      terminal: ['dlq', 'resend', source, request.id, '--data', DATA_FILE],
      apply: (deployment, reason) =>
        resendDeadLetter(
          deployment,
          { source, id: request.id, data: DATA_FILE, apply: true, reason },
          async () => JSON.stringify(request.data),
          planned,
        ),
    };
  const ids = [...planned.keys()];
  const { cause } = request;
  const isLong = ids.length > PASTED_IDS_MAX && cause !== undefined;
  // A plan that changes nothing names what it was asked for.
  const chosen = isLong ? { cause } : ids.length > 0 ? { ids } : request;
  const terminal = ['dlq', kind, source, ...choiceWords(chosen)];
  const change = { kind, lock: source, planned };
  if (kind === 'redrive')
    return {
      ...change,
      confirmation: count,
      effects: [],
      terminal,
      apply: (deployment, reason) => redrive(deployment, { source, ids, apply: true, reason }, planned),
    };
  const { reject = false, effectsChecked = false } = request;
  const deadLetters = plan.kind === 'discard' ? plan.document.deadLetters : [];
  // The check is bound to the effects that the page has shown of what it discards.
  const shown = effectsOf(
    deadLetters.filter(({ id }) => planned.has(id)),
    reject,
  );
  return {
    ...change,
    confirmation: directory.mailroom.stack,
    effects: effectsOf(deadLetters, reject).map(effectText),
    terminal: [...terminal, ...(reject ? ['--reject'] : []), ...(effectsChecked ? [checkedWord(shown)] : [])],
    apply: (deployment, reason) =>
      discardDeadLetters(
        deployment,
        { source, ids, reject, effectsChecked: effectsChecked && effectsDigest(shown), apply: true, reason },
        planned,
      ),
  };
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

/** The verdicts that a change acts on. */
const ACTED_ON: ReadonlySet<string | null> = new Set([
  'runs',
  'handled',
  'discard',
  'discard-replacement',
  'reject',
  'send',
]);

function verdictsOf(plan: PlanDocument): PlannedVerdicts {
  const acted = verdictsIn(plan).filter((one): one is [string, string] => ACTED_ON.has(one[1]));
  return new Map(acted);
}

function verdictsIn(plan: PlanDocument): (readonly [id: string, verdict: string | null])[] {
  switch (plan.kind) {
    case 'redrive':
      return plan.document.deadLetters.map(({ id, verdict }) => [id, verdict]);
    case 'discard':
      return plan.document.deadLetters.map(({ id, outcome }) => [id, outcome]);
    case 'repair':
      return (plan.document.repair?.events ?? []).map((event) => [repairKey(event), event.outcome]);
    case 'resend':
      return [[plan.document.newEventId, plan.document.verdict]];
  }
}

/** The most dead letters of one plan: as many as one run of the command handles. */
const IDS_MAX = 1_000;

/** The ids of dead letters and events: nothing that the command could take for an option. */
const ID = /^[0-9A-Za-z][\w-]{7,127}$/;

/** The most characters of a cause: stored fingerprints are cut before this. */
const CAUSE_MAX = 1_000;

/** Reads a request for a plan. @throws `BAD_ARGUMENT`, naming the member */
export function planRequest(request: unknown): PlanRequest {
  const { kind, source, ids, cause, id, data, since, reject, effectsChecked } = membersOf(request);
  if (kind === 'redrive' || kind === 'discard') {
    const choice = {
      source: text('source', source),
      ...(ids === undefined ? {} : { ids: idList(ids) }),
      ...(cause === undefined ? {} : { cause: text('cause', cause) }),
    };
    if (kind === 'redrive') return { kind, ...choice };
    if (ids === undefined && cause === undefined)
      throw bad('ids', 'is missing: a discard names its dead letters by "ids" or by "cause"');
    return {
      ...{ kind, ...choice },
      reject: flag('reject', reject),
      effectsChecked: flag('effectsChecked', effectsChecked),
    };
  }
  if (kind === 'resend') {
    if (data === undefined) throw bad('data', 'is missing: send the new data of the event');
    return { kind, source: text('source', source), id: idOf('id', id), data };
  }
  if (kind === 'repair') return { kind, since: text('since', since) };
  throw bad('kind', 'must be "redrive", "discard", "resend" or "repair"');
}

/** Reads a request to apply a plan. @throws `BAD_ARGUMENT` if the reason is absent or a placeholder */
export function applyRequest(request: unknown): ApplyRequest {
  const { reason, confirmation } = membersOf(request);
  if (typeof reason !== 'string') throw bad('reason', 'must be a string');
  try {
    return { reason: reasonArgument(reason), confirmation: text('confirmation', confirmation) };
  } catch (error) {
    if (error instanceof MailroomError) throw error;
    throw bad('reason', `is refused. ${errorMessage(error)}`);
  }
}

function membersOf(request: unknown): Readonly<Partial<Record<string, unknown>>> {
  if (isObject(request) && !Array.isArray(request)) return request;
  throw new MailroomError('BAD_ARGUMENT', 'The request must be a JSON object.');
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= CAUSE_MAX) return value;
  throw bad(name, `must be a string of 1 to ${CAUSE_MAX} characters`);
}

function flag(name: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  throw bad(name, 'must be true or false');
}

function idOf(name: string, value: unknown): string {
  if (typeof value === 'string' && ID.test(value)) return value;
  throw bad(name, 'must be the whole id of a dead letter or of its event');
}

function idList(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > IDS_MAX)
    throw bad('ids', `must be a list of 1 to ${IDS_MAX} ids`);
  return value.map((one) => idOf('ids', one));
}

function bad(name: string, problem: string): MailroomError {
  return new MailroomError('BAD_ARGUMENT', `"${name}" ${problem}.`);
}
