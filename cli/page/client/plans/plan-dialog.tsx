import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { duration } from '../../../terminal/times.ts';
import type { ApplyRequest, DiscardChoice, Plan, PlanDocument, PlanRequest } from '../../server/protocol.ts';
import { Button, Choice, Command } from '../frame/controls.tsx';
import { count, many } from '../frame/format.ts';
import { useMailroom, useNow, useTask } from '../frame/mailroom.ts';
import { Notice, Refused, State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { Table } from '../frame/table.tsx';
import { followStarted } from './run-panel.tsx';
import { missingFrom, REASON_MAX, type ShownPlan, usePlan } from './use-plan.ts';
import { hasUnchecked, type PlanGroup, planGroups } from './verdicts.ts';

interface PlanDialogProps {
  readonly request: PlanRequest;
  readonly onClose: () => void;
  /** More about the change, shown above the verdicts. */
  readonly children?: ComponentChildren;
}

/** Shows what a change would do, and makes it once the operator has confirmed it. */
export function PlanDialog({ request: asked, onClose, children }: PlanDialogProps) {
  const { info } = useMailroom();
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const [choice, setChoice] = useState<DiscardChoice>({});
  const request = asked.kind === 'discard' ? { ...asked, ...choice } : asked;
  const { plan, last, error, again } = usePlan(request);
  // The browser keeps the focus in a modal dialog, and returns it when the dialog closes.
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
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
      {request.kind === 'discard' && <HowToDiscard request={request} last={last} onChange={setChoice} />}
      <p role="status">
        {plan === null && error === null && <State is="busy">Planning. Nothing is changed.</State>}
        {plan !== null && <span class="unseen">Planned</span>}
      </p>
      <Refused error={error} />
      {plan !== null && <Shown request={request} plan={plan} onAgain={again} onClose={close} />}
      {(plan?.toApply?.count ?? 0) === 0 && (
        <div class="row">
          {error !== null && (
            <button type="button" onClick={again}>
              Plan again
            </button>
          )}
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      )}
    </dialog>
  );
}

function titleOf(request: PlanRequest): string {
  if (request.kind === 'repair') return 'Repair: send missing events, put changed rows right';
  const { source } = request;
  if (request.kind === 'resend') return `Resend a dead letter in ${source}`;
  const [noun, where] = source === 'dead' ? ['DEAD event', ''] : ['dead letter', ` in ${source}`];
  const chosen = request.ids === undefined ? `${noun}s` : many(request.ids.length, noun);
  const verb = request.kind === 'redrive' ? 'Redrive' : request.reject ? 'Reject' : 'Discard';
  return `${verb} ${chosen}${where}`;
}

/** Effects are cut to this many characters: a name, an error of 200 and a key. */
const EFFECT_CHARACTERS = 600;

interface HowToDiscardProps {
  readonly request: Extract<PlanRequest, { kind: 'discard' }>;
  /** The latest plan: it stays here while the next one is made, so that a control keeps the focus. */
  readonly last: ShownPlan | null;
  readonly onChange: (choice: DiscardChoice) => void;
}

/** The choice of a discard: with the handler's `rejected` function or without it, and once the side effects are checked. Each change plans again. */
function HowToDiscard({ request, last, onChange }: HowToDiscardProps) {
  const { source, reject = false, effectsChecked = false } = request;
  const effects = last?.toApply?.effects ?? [];
  const mustCheck =
    effectsChecked ||
    effects.length > 0 ||
    (last !== null && last.planned !== null && hasUnchecked(last.planned));
  return (
    <>
      {/^(consumer|rule):/.test(source) && (
        <Choice
          label="How"
          value={reject ? 'reject' : 'discard'}
          options={[
            ['discard', 'discard'],
            ['reject', "reject: the handler's rejected function commits its events"],
          ]}
          // More side effects may have to be checked for the other choice.
          onChange={(how) => onChange({ reject: how === 'reject' })}
        />
      )}
      {effects.length > 0 && (
        <ul class="effects">
          {effects.map((effect) => (
            <li key={effect}>
              <Stored text={effect} clip={EFFECT_CHARACTERS} />
            </li>
          ))}
        </ul>
      )}
      {mustCheck && (
        <label class="row">
          <input
            type="checkbox"
            checked={effectsChecked}
            onChange={({ currentTarget }) => onChange({ reject, effectsChecked: currentTarget.checked })}
          />
          I have asked the providers about all side effects
        </label>
      )}
    </>
  );
}

interface ShownProps extends Pick<PlanDialogProps, 'request' | 'onClose'> {
  readonly plan: ShownPlan;
  readonly onAgain: () => void;
}

function Shown({ request, plan: { planned, notRead, command, toApply }, onAgain, onClose }: ShownProps) {
  return (
    <>
      {planned !== null && <PlanTable request={request} plan={planned} />}
      {notRead !== null && (
        <Notice is="look" title="Your role cannot read this plan">
          <p>
            <Stored text={notRead} />
          </p>
        </Notice>
      )}
      <div class="field">
        <p class="quiet-text">
          The same in a terminal{request.kind === 'resend' && ', with the new data saved as data.json'}:
        </p>
        <Command line={command} />
      </div>
      {toApply === null ? (
        <Notice is="idle" title="The web console is read-only. Run the command in a terminal.">
          <p>
            To apply plans here, start the web console with <code>mailroom ui --allow-changes</code>.
          </p>
        </Notice>
      ) : toApply.count === 0 ? (
        <Notice is="idle" title="There is nothing to change." />
      ) : (
        <ConfirmForm key={toApply.id} plan={toApply} onAgain={onAgain} onClose={onClose} />
      )}
    </>
  );
}

/** The errors that a verdict shows; the screen behind the dialog has them all. */
const REASONS_MAX = 3;

/** The effect of a plan by verdict, each with what can be done. */
function PlanTable({ request, plan }: { readonly request: PlanRequest; readonly plan: PlanDocument }) {
  return (
    <Table
      caption="What would happen"
      columns={[
        { title: 'Count', isNumber: true, cell: (group: PlanGroup) => count(group.count) },
        { title: 'Verdict', cell: ({ is, label }) => <State is={is}>{label}</State> },
        {
          title: 'Meaning',
          cell: ({ todo, reasons }) => (
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
          ),
        },
      ]}
      rows={planGroups(plan, 'ids' in request ? request.ids : undefined)}
      keyOf={({ label }) => label}
      empty="No dead letter or event matches."
    />
  );
}

/** The reason and the typed confirmation of a plan, while it is valid. It closes the dialog once it is applied. */
function ConfirmForm({
  plan,
  onAgain,
  onClose,
}: Omit<ShownProps, 'plan' | 'request'> & { readonly plan: Plan }) {
  const { keep } = useMailroom();
  const { id, expiresAt, confirmation: wanted } = plan;
  const ids = { reason: useId(), typed: useId(), missing: useId() };
  const leftMs = expiresAt - useNow();
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const missing = missingFrom({ reason, typed }, wanted);
  const { error, isBusy, start } = useTask(async (api, confirmed: ApplyRequest) => {
    const run = await api.apply(id, confirmed);
    followStarted(run);
    keep(run);
    onClose();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    if (missing.length === 0 && !isBusy) start({ reason: reason.trim(), confirmation: typed.trim() });
  };
  if (leftMs <= 0)
    return (
      <>
        <Refused error={error} />
        <div role="status">
          <Notice
            is="look"
            title="This plan has expired. The dead letters or events may have changed since."
          />
        </div>
        <div class="row">
          <button type="button" onClick={onAgain}>
            Plan again
          </button>
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      </>
    );
  return (
    <>
      <Refused error={isBusy ? null : error} />
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
            isDisabled={missing.length > 0 || isBusy}
            aria-describedby={ids.missing}
          >
            {isBusy ? 'Applying' : 'Apply'}
          </Button>
          <button type="button" onClick={onClose}>
            Close
          </button>
          <span id={ids.missing} class="quiet-text">
            {missing.join(' ')}
          </span>
          <span class="plan-clock">
            Valid for {duration(Math.max(1, Math.floor(leftMs / 1_000)) * 1_000)}
          </span>
        </div>
      </form>
    </>
  );
}
