import { useState } from 'preact/hooks';
import { Due, Expiry } from '../frame/clocks.tsx';
import { Command } from '../frame/controls.tsx';
import { stateOf } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { routeTo } from '../frame/route.ts';
import { Notice, State } from '../frame/state.tsx';
import { Prose, Stored } from '../frame/stored.tsx';
import { Fact } from '../frame/table.tsx';
import { PlanDialog } from '../plans/plan-dialog.tsx';
import { BY_COMMAND, shownVerdict } from '../plans/verdicts.ts';
import type { WhyDocument } from './waterfall.ts';

/** Longer errors are cut; the whole verdict has all of it. */
const CAUSE_CHARACTERS = 240;

interface VerdictNoticeProps {
  readonly document: WhyDocument;
}

/** The verdict. With a cause, a delay or a dead letter, its facts are labelled lines above one action, and the sentences are behind a click. */
export function VerdictNotice({ document }: VerdictNoticeProps) {
  const { state, text, next, consumer, cause, delay, deadLetter } = document.verdict;
  const whole = (
    <>
      <p>
        <Prose text={text} />
      </p>
      {next !== null && (
        <p>
          <Command line={next} />
        </p>
      )}
    </>
  );
  if (cause === null && delay === null && deadLetter === null) {
    return (
      <Notice is={stateOf(state)} title={<span class="verdict">{state}</span>}>
        {whole}
      </Notice>
    );
  }
  return (
    <Notice
      is={stateOf(state)}
      title={
        <span class="verdict">
          {state} at {consumer ?? 'the outbox'}
        </span>
      }
    >
      <dl class="verdict-facts">
        <DelayFacts delay={delay} />
        <Fact title={delay === null ? 'Cause' : 'Last error'}>
          {cause === null ? null : <Stored text={cause} clip={CAUSE_CHARACTERS} />}
        </Fact>
        <Doubts document={document} />
        <NextAttempt document={document} />
        <Deadline deadLetter={deadLetter} />
      </dl>
      <Action document={document} />
      <details>
        <summary>The whole verdict</summary>
        {whole}
      </details>
    </Notice>
  );
}

/** The place where the event or message waits, the problem, and what comes before the action. */
function DelayFacts({ delay }: Pick<WhyDocument['verdict'], 'delay'>) {
  if (delay === null) return null;
  const { place, problem, asksFirst, before } = delay;
  return (
    <>
      <Fact title="Where">
        <Stored text={place} />
      </Fact>
      <Fact title={before === null || asksFirst ? 'Cause' : 'Cause unknown'}>
        {problem === null ? null : <Prose text={problem} />}
      </Fact>
      <Fact title={asksFirst ? 'Ask first' : 'To tell which'}>
        {before === null && !asksFirst ? null : (
          <>
            {asksFirst && <p>It may have been stopped on purpose.</p>}
            {before !== null && <Command line={before} />}
          </>
        )}
      </Fact>
    </>
  );
}

/** The effects of the message that may have happened without a result. */
function doubtsOf({
  verdict: { eventId, consumer },
  effectsInDoubt,
}: WhyDocument): WhyDocument['effectsInDoubt'] {
  return effectsInDoubt.filter((one) => one.eventId === eventId && one.consumer === consumer);
}

function Doubts({ document }: VerdictNoticeProps) {
  const { state } = document.verdict;
  return doubtsOf(document).map(({ effect, key }) => (
    <Fact key={key} title="Effect in doubt">
      <strong>
        <Stored text={effect} clip={80} />
      </strong>{' '}
      may have happened.{' '}
      {state === 'retrying'
        ? 'The next attempt repeats it under the key'
        : 'First ask its provider about the key that every attempt and a redrive send:'}{' '}
      <code>
        <Stored text={key} />
      </code>
    </Fact>
  ));
}

/** The next attempt, as the story has it; none of a message that is late. */
function NextAttempt({ document: { verdict, events } }: VerdictNoticeProps) {
  if (verdict.delay !== null) return null;
  const { story = [] } = events.find(({ eventId }) => eventId === verdict.eventId) ?? {};
  const next = story.find(({ what, consumer }) => what === 'next-attempt' && consumer === verdict.consumer);
  if (next === undefined || next.at === null) return null;
  return (
    <Fact title="Next attempt">
      <Due at={next.at} />, <Stored text={next.text} />
    </Fact>
  );
}

/** When the dead letter is permanently deleted, and the verdict of the deployed code unless it would run. */
function Deadline({ deadLetter }: Pick<WhyDocument['verdict'], 'deadLetter'>) {
  if (deadLetter === null) return null;
  const { source, expiresAt, verdict } = deadLetter;
  const shown = verdict === null || verdict === 'runs' ? null : shownVerdict(verdict, source);
  return (
    <>
      <Fact title="Deadline">
        Its dead letter is permanently deleted <Expiry at={expiresAt} />
      </Fact>
      {shown !== null && (
        <Fact title="Deployed code">
          <State is={shown.is}>{shown.label}</State> {shown.todo}
        </Fact>
      )}
    </>
  );
}

/**
 * The one action: the plan of a redrive that would run, the dead letter of one that would not, or the command. With an effect in doubt, its
 * provider comes first; where EventBridge may not send to the queue, the command that shows why.
 */
function Action({ document }: VerdictNoticeProps) {
  const { next, deadLetter } = document.verdict;
  const { allowsChanges } = useMailroom().info;
  const [isPlanning, setPlanning] = useState(false);
  const { source = '', id = '', verdict = null, isRefused = false } = deadLetter ?? {};
  const isRunnable = verdict === 'runs';
  if (isRunnable && allowsChanges) {
    return (
      <p>
        {isRefused && next !== null && <Command line={next} />}
        <button
          type="button"
          class={isRefused || doubtsOf(document).length > 0 ? undefined : 'primary'}
          onClick={() => setPlanning(true)}
        >
          Plan a redrive
        </button>
        {isPlanning && (
          <PlanDialog request={{ kind: 'redrive', source, ids: [id] }} onClose={() => setPlanning(false)} />
        )}
      </p>
    );
  }
  if (verdict !== null && !isRunnable && !BY_COMMAND.has(verdict)) {
    return (
      <p>
        <a class="button" href={routeTo('dead-letters', source, { id })}>
          Open its dead letter
        </a>
      </p>
    );
  }
  if (next === null) return null;
  return (
    <p>
      <Command line={next} />
    </p>
  );
}
