import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { duration } from '../../../terminal/times.ts';
import type { ApplyRequest, PlanDocument, PlanRequest } from '../../server/protocol.ts';
import type { RefusedError } from '../frame/api.ts';
import { refused } from '../frame/api.ts';
import { Button, Command } from '../frame/controls.tsx';
import { count, many } from '../frame/format.ts';
import { useMailroom, useNow } from '../frame/mailroom.ts';
import { Notice, Refused, State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { Table } from '../frame/table.tsx';
import { followStartedRun } from './runs.ts';
import { missingFrom, REASON_MAX, type ShownPlan, usePlan } from './use-plan.ts';
import { type PlanGroup, planGroups } from './verdicts.ts';

interface PlanDialogProps {
  readonly request: PlanRequest;
  readonly onClose: () => void;
  /** More about the change, shown above the verdicts. */
  readonly children?: ComponentChildren;
}

/** Shows what a change would do, and makes it once the operator has confirmed it. */
export function PlanDialog({ request, onClose, children }: PlanDialogProps) {
  const { api, info, keep } = useMailroom();
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const { plan, error, again } = usePlan(request);
  const [state, setState] = useState<{ readonly isApplying: boolean; readonly error: RefusedError | null }>({
    isApplying: false,
    error: null,
  });
  // The browser keeps the focus in a modal dialog, and returns it when the dialog closes.
  useEffect(() => dialog.current?.showModal(), []);
  const apply = async (planId: string, confirmed: ApplyRequest): Promise<void> => {
    setState({ isApplying: true, error: null });
    try {
      const run = await api.apply(planId, confirmed);
      followStartedRun(run.id);
      keep({ run });
      dialog.current?.close();
    } catch (failure) {
      setState({ isApplying: false, error: refused(failure) });
    }
  };
  const planAgain = () => {
    setState({ isApplying: false, error: null });
    again();
  };
  return (
    <dialog ref={dialog} class="plan stack" aria-labelledby={title} onClose={onClose}>
      <div class="panel-head">
        <h2 id={title} tabIndex={-1} autofocus>
          {titleOf(request)}
        </h2>
        <span class="quiet-text">
          {info.stack}, account {info.account}, {info.region}
        </span>
      </div>
      {children}
      <p role="status">
        {plan === null && error === null && <State is="busy">Planning. Nothing is changed.</State>}
        {plan !== null && <span class="unseen">Planned</span>}
      </p>
      {error !== null && <Refused error={error} />}
      {plan !== null && (
        <>
          {plan.planned !== null && <PlanTable request={request} plan={plan.planned} />}
          {plan.notRead !== null && (
            <Notice is="look" title="Your role cannot read this plan">
              <p>
                <Stored text={plan.notRead} />
              </p>
            </Notice>
          )}
          <SameCommand line={plan.command} kind={request.kind} />
          {state.error !== null && <Refused error={state.error} />}
          <Confirm plan={plan} isApplying={state.isApplying} onApply={apply} onAgain={planAgain} />
        </>
      )}
      <div class="row">
        {error !== null && (
          <button type="button" onClick={planAgain}>
            Plan again
          </button>
        )}
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

interface SameCommandProps {
  readonly line: string;
  readonly kind: PlanRequest['kind'];
}

function SameCommand({ line, kind }: SameCommandProps) {
  return (
    <div class="field">
      <p class="quiet-text">
        The same in a terminal{kind === 'resend' && ', with the new data saved as data.json'}:
      </p>
      <Command line={line} />
    </div>
  );
}

interface ConfirmProps {
  readonly plan: ShownPlan;
  readonly isApplying: boolean;
  readonly onApply: (planId: string, confirmed: ApplyRequest) => void;
  readonly onAgain: () => void;
}

function Confirm({ plan: { toApply }, isApplying, onApply, onAgain }: ConfirmProps) {
  if (toApply === null)
    return (
      <Notice is="idle" title="This page is read-only. Run the command in a terminal.">
        <p>
          To apply plans here, start the page with <code>mailroom ui --allow-changes</code>.
        </p>
      </Notice>
    );
  if (toApply.count === 0) return <Notice is="idle" title="There is nothing to change." />;
  return (
    <ConfirmForm
      key={toApply.id}
      expiresAt={toApply.expiresAt}
      wanted={toApply.confirmation}
      isApplying={isApplying}
      effects={toApply.effects}
      onApply={(confirmed) => onApply(toApply.id, confirmed)}
      onAgain={onAgain}
    />
  );
}

function titleOf(request: PlanRequest): string {
  switch (request.kind) {
    case 'redrive':
      return `Redrive ${chosen(request)}`;
    case 'discard':
      return `Discard ${chosen(request)}`;
    case 'resend':
      return `Resend a dead letter in ${request.source}`;
    case 'repair':
      return 'Repair: send the missing events';
  }
}

function chosen({ source, ids }: { readonly source: string; readonly ids?: readonly string[] }): string {
  return ids === undefined ? `dead letters in ${source}` : `${many(ids.length, 'dead letter')} in ${source}`;
}

/** Effects are cut to this many characters: a name, an error of 200 and a key. */
const EFFECT_CHARACTERS = 600;

interface ConfirmFormProps {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** The text to type. */
  readonly wanted: string;
  /** The side effects of which the operator must have asked the providers. */
  readonly effects: readonly string[];
  readonly isApplying: boolean;
  readonly onApply: (confirmed: ApplyRequest) => void;
  readonly onAgain: () => void;
}

/** The reason and the typed confirmation of a plan, while it is valid. */
function ConfirmForm({ expiresAt, wanted, effects, isApplying, onApply, onAgain }: ConfirmFormProps) {
  const ids = { reason: useId(), typed: useId(), checked: useId(), missing: useId() };
  const leftMs = expiresAt - useNow();
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const [isChecked, setChecked] = useState(effects.length === 0);
  const missing = missingFrom({ reason, typed, isChecked }, wanted);
  if (leftMs <= 0)
    return (
      <div role="status">
        <Notice is="look" title="This plan has expired. The dead letters or events may have changed since.">
          <p>
            <button type="button" onClick={onAgain}>
              Plan again
            </button>
          </p>
        </Notice>
      </div>
    );
  const submit = (event: Event) => {
    event.preventDefault();
    if (missing.length === 0 && !isApplying)
      onApply({ reason: reason.trim(), confirmation: typed.trim(), effectsChecked: isChecked });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <div class="field">
        <label for={ids.reason}>Reason, stored in the operations log</label>
        <input
          id={ids.reason}
          value={reason}
          required
          maxLength={REASON_MAX}
          autocomplete="off"
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </div>
      {effects.length > 0 && (
        <div class="field">
          <ul>
            {effects.map((effect) => (
              <li key={effect}>
                <Stored text={effect} clip={EFFECT_CHARACTERS} />
              </li>
            ))}
          </ul>
          <label for={ids.checked}>
            <input
              id={ids.checked}
              type="checkbox"
              checked={isChecked}
              onChange={({ currentTarget }) => setChecked(currentTarget.checked)}
            />{' '}
            I have asked the providers about {many(effects.length, 'idempotency key')}
          </label>
        </div>
      )}
      <div class="field">
        <label for={ids.typed}>
          To confirm, type <code>{wanted}</code>
        </label>
        <input
          id={ids.typed}
          value={typed}
          required
          autocomplete="off"
          spellcheck={false}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </div>
      <div class="row">
        <Button
          type="submit"
          class="primary"
          isDisabled={missing.length > 0 || isApplying}
          aria-describedby={ids.missing}
        >
          {isApplying ? 'Applying' : 'Apply'}
        </Button>
        <span id={ids.missing} class="quiet-text">
          {missing.join(' ')}
        </span>
        <span class="plan-clock">Valid for {duration(Math.max(1, Math.floor(leftMs / 1_000)) * 1_000)}</span>
      </div>
    </form>
  );
}

/** The errors that a verdict shows; the screen behind the dialog has them all. */
const REASONS_MAX = 3;

/** The effect of a plan by verdict, each with what can be done. */
function PlanTable({ request, plan }: { readonly request: PlanRequest; readonly plan: PlanDocument }) {
  const ids = 'ids' in request ? request.ids : undefined;
  const groups = planGroups(plan, ids);
  return (
    <Table
      caption="What would happen"
      columns={[
        { title: 'Count', isNumber: true, cell: (group: PlanGroup) => count(group.count) },
        { title: 'Verdict', cell: ({ is, label }) => <State is={is}>{label}</State> },
        { title: 'Meaning', cell: (group) => <Meaning group={group} /> },
      ]}
      rows={groups}
      keyOf={({ label }) => label}
      empty="No dead letter or event matches."
    />
  );
}

function Meaning({ group: { todo, reasons } }: { readonly group: PlanGroup }) {
  return (
    <div class="meaning">
      <p>{todo}</p>
      {reasons.slice(0, REASONS_MAX).map(([reason, number]) => (
        <p key={reason} class="quiet-text">
          {number > 1 && `${count(number)} × `}
          <Stored text={reason} clip={200} />
        </p>
      ))}
      {reasons.length > REASONS_MAX && (
        <p class="quiet-text">and {many(reasons.length - REASONS_MAX, 'other error')}</p>
      )}
    </div>
  );
}
