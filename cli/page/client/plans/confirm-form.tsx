import { useId, useState } from 'preact/hooks';
import { duration } from '../../../terminal/times.ts';
import { Button } from '../frame/button.tsx';
import { useNow } from '../frame/mailroom.ts';
import { Notice } from '../frame/notice.tsx';
import { missingFrom, REASON_MAX } from './plan-groups.ts';

interface ConfirmFormProps {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** The text to type. */
  readonly wanted: string;
  readonly isApplying: boolean;
  readonly onApply: (reason: string, confirmation: string) => void;
  readonly onAgain: () => void;
}

/** The reason and the typed confirmation of a plan, while it is valid. */
export function ConfirmForm({ expiresAt, wanted, isApplying, onApply, onAgain }: ConfirmFormProps) {
  const ids = { reason: useId(), typed: useId(), missing: useId() };
  const leftMs = expiresAt - useNow();
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const missing = missingFrom({ reason, typed }, wanted);
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
    if (missing.length === 0 && !isApplying) onApply(reason.trim(), typed.trim());
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
