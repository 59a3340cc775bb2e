import { errorMessage, MailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { audit } from '../../../commands/audit.ts';
import { discardDeadLetters } from '../../../commands/dlq-discard.ts';
import { redrive } from '../../../commands/dlq-redrive.ts';
import { resendDeadLetter } from '../../../commands/dlq-resend.ts';
import type { Deployment } from '../../../deployment/deployment.ts';
import { effectText } from '../../../deployment/effect-text.ts';
import { repairKey } from '../../../reports/audit/audit-repair.ts';
import { durationArgument } from '../../../terminal/arguments.ts';
import type { PlannedVerdicts } from '../../../terminal/change.ts';
import { shell } from '../../../terminal/shell.ts';
import type { Report } from '../../../terminal/terminal.ts';
import type { PlanDocument, PlanRequest } from '../protocol.ts';

/** The change that a plan describes. */
export interface PlannedChange {
  readonly kind: PlanRequest['kind'];
  /** The runs of one lock exclude each other: the dead-letter source, or the repair. */
  readonly lock: string;
  /** The verdicts of the plan, by the id of everything that it changes. */
  readonly planned: PlannedVerdicts;
  /** The text that the operator types. */
  readonly confirmation: string;
  /** The effects that the operator must have checked. */
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
      // The operator confirms the effects with the plan.
      return ofKind(kind, await discardDeadLetters(deployment, { ...request, effectsChecked: true }));
    case 'resend':
      return ofKind(
        kind,
        await resendDeadLetter(deployment, { ...request, data: DATA_FILE }, async () =>
          JSON.stringify(request.data),
        ),
      );
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
  const run = kind === 'redrive' ? redrive : discardDeadLetters;
  const effects =
    plan.kind === 'discard'
      ? plan.document.deadLetters.flatMap(({ effects }) => effects.map(effectText))
      : [];
  const checked = effects.length > 0 ? { effectsChecked: true } : {};
  return {
    kind,
    lock: source,
    planned,
    confirmation: kind === 'discard' ? directory.mailroom.stack : count,
    effects,
    terminal: [
      ...['dlq', kind, source],
      ...(isLong ? ['--cause', cause] : ids),
      ...(effects.length > 0 ? ['--effects-checked'] : []),
    ],
    apply: (deployment, reason) => run(deployment, { source, ids, apply: true, reason, ...checked }, planned),
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
const ACTED_ON: ReadonlySet<string | null> = new Set(['runs', 'handled', 'discard', 'discard-replacement']);

function verdictsOf(plan: PlanDocument): PlannedVerdicts {
  const acted = (all: readonly (readonly [string, string | null])[]) =>
    new Map(
      all.flatMap(([id, verdict]) => (verdict !== null && ACTED_ON.has(verdict) ? [[id, verdict]] : [])),
    );
  switch (plan.kind) {
    case 'redrive':
      return acted(plan.document.deadLetters.map(({ id, verdict }) => [id, verdict]));
    case 'discard':
      return acted(plan.document.deadLetters.map(({ id, outcome }) => [id, outcome]));
    case 'repair':
      return new Map(
        (plan.document.repair?.events ?? []).flatMap((event) =>
          event.outcome === 'send' ? [[repairKey(event), event.outcome]] : [],
        ),
      );
    case 'resend': {
      const { newEventId, verdict } = plan.document;
      return new Map(verdict === 'runs' ? [[newEventId, verdict]] : []);
    }
  }
}
