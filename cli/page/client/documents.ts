import type { OperationRow } from '../../../lambdas/runtime/store/rows.ts';
import type { auditJson } from '../../reports/audit/audit-text.ts';
import type { deadLetterJson } from '../../reports/dead-letters/dead-letter-text.ts';
import type { RedriveVerdict } from '../../reports/dead-letters/redrive-plan.ts';
import type { ListedMessage } from '../../reports/messages/listed-message.ts';
import type { Cause } from '../../terminal/listing.ts';

/** The documents of `--json` that the screens show, as docs/cli.md describes them. */

/** A dead letter of `dlq list`. */
export type DeadLetterEntry = ReturnType<typeof deadLetterJson>;

/** A source of the document of `dlq list --json`. */
export interface ListedSource {
  readonly source: string;
  readonly count: number;
  readonly deadLetters: readonly DeadLetterEntry[];
}

/** The document of `dlq show --json`. */
export interface ShownDeadLetter extends DeadLetterEntry {
  readonly source: string;
  readonly status: string | null;
  /** The command that comes next. */
  readonly next: string;
  /** Only with `--payload`; `null` if it cannot be read. */
  readonly body?: string | null;
}

/** The document of `dlq redrive --json`: a plan, or its outcome. */
export interface RedriveDocument {
  readonly stack: string;
  readonly account: string;
  readonly region: string;
  readonly source: string;
  /** All dead letters of the source, of which `deadLetters` are selected. */
  readonly count: number;
  readonly applied: boolean;
  readonly stopped?: boolean;
  readonly deadLetters: readonly PlannedDeadLetter[];
}

/** A dead letter of a {@link RedriveDocument}. */
export interface PlannedDeadLetter extends DeadLetterEntry {
  /** `null` if it has changed since the plan. */
  readonly verdict: RedriveVerdict | null;
  readonly code: string | null;
  readonly message: string | null;
  /** Absent in a plan. */
  readonly outcome?: string;
  /** The fingerprint with which it failed again. */
  readonly failedAgain?: string | null;
}

/** The document of `dlq discard --json`. */
export interface DiscardDocument {
  readonly source: string;
  readonly applied: boolean;
  readonly deadLetters: readonly (DeadLetterEntry & {
    readonly outcome: string;
    readonly message?: string;
  })[];
}

/** The document of `messages list --json`. */
export interface MessagesDocument {
  readonly messages: readonly ListedMessage[];
  readonly more: boolean;
}

/** The document of `messages list --by cause --json`. */
export interface CausesDocument {
  readonly causes: readonly Cause[];
  readonly more: boolean;
}

/** A problem of `doctor`, with the commands that repair it. */
interface DoctorFinding {
  readonly part: string;
  readonly problem: string;
  readonly text: string;
  readonly commands: readonly string[];
}

/** The document of `doctor --json`. */
export interface DoctorDocument {
  readonly ok: boolean;
  readonly checks: number;
  readonly problems: readonly DoctorFinding[];
  readonly notChecked: readonly { readonly needs: readonly string[]; readonly parts: readonly string[] }[];
  readonly skipped: readonly string[];
}

/** The document of `audit --json`. */
export type ShownAudit = ReturnType<typeof auditJson>;

/** The document of `log --json`. */
export interface LogDocument {
  readonly operations: readonly Pick<OperationRow, 'at' | 'by' | 'command' | 'subject' | 'reason'>[];
  readonly more: boolean;
  readonly unreadable: number;
}
