import { useId, useState } from 'preact/hooks';
import { duration } from '../../../terminal/times.ts';
import type { ApplyRequest } from '../../server/protocol.ts';
import { Button } from '../frame/button.tsx';
import { many } from '../frame/format.ts';
import { useNow } from '../frame/mailroom.ts';
import { Notice } from '../frame/notice.tsx';
import { Stored } from '../frame/stored.tsx';
import { missingFrom, REASON_MAX } from './plan-groups.ts';

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
export function ConfirmForm({ expiresAt, wanted, effects, isApplying, onApply, onAgain }: ConfirmFormProps) {
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
