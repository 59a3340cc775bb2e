import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { ApplyRequest, PlanRequest } from '../../server/protocol.ts';
import type { RefusedError } from '../frame/api.ts';
import { Command } from '../frame/command.tsx';
import { many } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { Notice, Refused } from '../frame/notice.tsx';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { refused } from '../frame/use-reading.ts';
import { ConfirmForm } from '../plans/confirm-form.tsx';
import { followStartedRun } from '../plans/followed-runs.ts';
import { PlanTable } from '../plans/plan-table.tsx';
import { type ShownPlan, usePlan } from '../plans/use-plan.ts';

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
