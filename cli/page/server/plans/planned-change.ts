import type { Deployment } from '../../../deployment/deployment.ts';
import { repairKey } from '../../../reports/audit/audit-repair.ts';
import { deadLetterSource } from '../../../reports/dead-letters/sources.ts';
import { durationArgument } from '../../../terminal/arguments.ts';
import type { PlannedVerdicts } from '../../../terminal/change.ts';
import { shell } from '../../../terminal/shell.ts';
import type { PlanRequest } from '../protocol.ts';

/** The change that a plan describes, as arguments of the command. */
export interface PlannedChange {
  readonly kind: PlanRequest['kind'];
  /** The runs of one lock exclude each other: the dead-letter source, or the repair. */
  readonly lock: string;
  /** The arguments that make the plan; with `--apply` and a reason, the change. */
  readonly argv: readonly string[];
  /** The standard input of the command. @default none */
  readonly input?: string;
  /** The verdicts of the plan, by the id of everything that it changes. */
  readonly planned: PlannedVerdicts;
  /** The text that the operator types. */
  readonly confirmation: string;
  /** The command of a terminal that makes the same change, up to its reason. */
  readonly terminal: readonly string[];
}

/** More ids than these are not written into a command to paste, if a cause selects the same dead letters. */
const PASTED_IDS_MAX = 20;

/** A repair covers this much more than its plan did: the range ends now, and its beginning must not move past an event. */
const REPAIR_EXTRA_MINUTES = 10;

/** The arguments of the command that plans a change. @throws `NO_SUCH_SOURCE`, `BAD_ARGUMENT` */
export function planArguments(
  { directory }: Pick<Deployment, 'directory'>,
  request: PlanRequest,
): { readonly argv: readonly string[]; readonly input?: string } {
  if (request.kind === 'repair') return { argv: ['audit', '--since', request.since, '--repair'] };
  const { name } = deadLetterSource(directory, request.source);
  if (request.kind === 'resend')
    return {
      argv: ['dlq', 'resend', name, request.id, '--data', '-'],
      input: JSON.stringify(request.data),
    };
  const { ids = [], cause } = request;
  return { argv: ['dlq', request.kind, name, ...ids, ...(cause === undefined ? [] : ['--cause', cause])] };
}

/** Reads the change that a plan describes from the document that the command printed. */
export function plannedChange(
  deployment: Pick<Deployment, 'directory'>,
  request: PlanRequest,
  document: unknown,
): PlannedChange {
  const { kind } = request;
  const planned = verdictsOf(kind, document);
  const count = String(planned.size);
  if (request.kind === 'repair') {
    const minutes = Math.ceil(durationArgument(request.since) / 60_000) + REPAIR_EXTRA_MINUTES;
    const argv = ['audit', '--since', `${minutes}m`, '--repair'];
    return { kind, lock: 'audit --repair', argv, planned, confirmation: count, terminal: argv };
  }
  const lock = request.source;
  if (request.kind === 'resend') {
    const { argv, input = '' } = planArguments(deployment, request);
    const { consumer = '' } = document as { readonly consumer?: string };
    const terminal = ['dlq', 'resend', request.source, request.id, '--data', 'data.json'];
    return { kind, lock, argv, input, planned, confirmation: consumer, terminal };
  }
  const ids = [...planned.keys()];
  const argv = ['dlq', kind, request.source, ...ids];
  const { cause } = request;
  const isLong = ids.length > PASTED_IDS_MAX && cause !== undefined;
  const terminal = isLong ? ['dlq', kind, request.source, '--cause', cause] : argv;
  const { stack } = deployment.directory.mailroom;
  return { kind, lock, argv, planned, confirmation: kind === 'discard' ? stack : count, terminal };
}

/** The command to paste. @param reason - @default the placeholder, which the command refuses */
export function terminalCommand(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  { terminal }: Pick<PlannedChange, 'terminal'>,
  reason = '…',
): string {
  return commandLine(shell`${terminal} --apply --reason ${reason}`);
}

/** The members of the commands' documents that say what a change touches. */
interface PlanDocument {
  readonly deadLetters?: readonly {
    readonly id: string;
    readonly verdict?: string;
    readonly outcome?: string;
  }[];
  readonly repair?: {
    readonly events: readonly {
      readonly eventId: string;
      readonly consumer: string;
      readonly outcome: string;
    }[];
  };
  /** Of a resend. */
  readonly newEventId?: string;
  readonly verdict?: string;
}

function verdictsOf(kind: PlanRequest['kind'], document: unknown): PlannedVerdicts {
  const { deadLetters = [], repair, newEventId = '', verdict } = document as PlanDocument;
  switch (kind) {
    case 'redrive':
      return new Map(
        deadLetters.flatMap((one) =>
          one.verdict === 'runs' || one.verdict === 'handled' ? [[one.id, one.verdict]] : [],
        ),
      );
    case 'discard':
      return new Map(
        deadLetters.flatMap((one) =>
          one.outcome === 'discard' || one.outcome === 'discard-replacement' || one.outcome === 'handled'
            ? [[one.id, one.outcome]]
            : [],
        ),
      );
    case 'repair':
      return new Map(
        (repair?.events ?? []).flatMap((event) =>
          event.outcome === 'send' ? [[repairKey(event), event.outcome]] : [],
        ),
      );
    default:
      return new Map(verdict === 'runs' ? [[newEventId, verdict]] : []);
  }
}
