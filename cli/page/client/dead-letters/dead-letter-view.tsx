import { lossyNumberText } from '../../../terminal/exact-json.ts';
import type { PlanRequest } from '../../server/protocol.ts';
import { At, Expiry } from '../frame/clocks.tsx';
import { Button, Command } from '../frame/controls.tsx';
import { errorText } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { ReadingBar, useReading } from '../frame/reading.tsx';
import { State } from '../frame/state.tsx';
import { EventLink, Stored, StoredJson } from '../frame/stored.tsx';
import { Fact } from '../frame/table.tsx';
import { shownVerdict } from '../plans/verdicts.ts';
import { EditAndSend } from './edit-and-send.tsx';
import { type ReadDeadLetter, useReadSources } from './sources.ts';

interface DeadLetterViewProps {
  readonly source: string;
  readonly id: string;
  readonly onPlan: (request: PlanRequest) => void;
}

/** One dead letter: its facts, the verdict of the deployed code, and on request its payload. */
export function DeadLetterView({ source, id, onPlan }: DeadLetterViewProps) {
  const { info } = useMailroom();
  const { of } = useReadSources();
  const used = useReading('dlq-show');
  const { reading, error, isReading, read } = used;
  const listed = of(source).result?.deadLetters.find((deadLetter) => deadLetter.id === id);
  const shown = error === null ? (reading?.document ?? undefined) : undefined;
  const deadLetter: ReadDeadLetter | undefined = shown === undefined ? listed : { ...listed, ...shown };
  return (
    <>
      <section class="panel stack" aria-label="Facts">
        {deadLetter === undefined ? (
          <p class="quiet-text">This dead letter has not been read.</p>
        ) : (
          <Facts source={source} deadLetter={deadLetter} {...(shown && { status: shown.status })} />
        )}
        <ReadingBar used={used} verb="Receiving" what="the dead letters of its source, for this one">
          <Button isDisabled={isReading} onClick={() => read({ source, id })}>
            {listed === undefined ? 'Read' : 'Read again'}
          </Button>
          {info.showsPayloads && (
            <Button isDisabled={isReading} onClick={() => read({ source, id, payload: '1' })}>
              Read with payload
            </Button>
          )}
          <PlanButtons choice={{ source, ids: [id] }} onPlan={onPlan} />
        </ReadingBar>
        {!info.showsPayloads && (
          <p class="quiet-text">
            Payloads are hidden. To see or edit this one, start the web console with{' '}
            <code>mailroom ui --payload</code>.
          </p>
        )}
        {shown !== undefined && (
          <div class="row">
            Next: <Command line={shown.next} />
          </div>
        )}
      </section>
      {shown?.body === null && <p class="quiet-text">Its payload cannot be read.</p>}
      {typeof shown?.body === 'string' && (
        <>
          <section class="panel stack">
            <h2>Payload</h2>
            <StoredJson value={parsed(shown.body)} label="Payload" />
          </section>
          <EditAndSend source={source} id={id} body={shown.body} />
        </>
      )}
    </>
  );
}

interface PlanButtonsProps extends Pick<DeadLetterViewProps, 'onPlan'> {
  readonly choice: { readonly source: string; readonly ids?: readonly string[]; readonly cause?: string };
}

/** The buttons that plan a change of some dead letters. */
export function PlanButtons({ choice, onPlan }: PlanButtonsProps) {
  return (
    <>
      <button type="button" onClick={() => onPlan({ kind: 'redrive', ...choice })}>
        Plan a redrive
      </button>
      <button type="button" onClick={() => onPlan({ kind: 'discard', ...choice })}>
        Plan a discard
      </button>
    </>
  );
}

function Facts({
  source,
  deadLetter,
  status,
}: {
  readonly source: string;
  readonly deadLetter: ReadDeadLetter;
  readonly status?: string | null;
}) {
  const { eventId, type, sentAt, expiresAt, fingerprint, lastError, verdict } = deadLetter;
  const refusal = errorText(deadLetter);
  return (
    <dl class="facts">
      <Fact title="Event">{eventId === null ? 'cannot be read' : <EventLink id={eventId} isWhole />}</Fact>
      <Fact title="Type">
        <Stored text={type ?? 'unknown'} />
      </Fact>
      <Fact title="First sent">{sentAt === null ? '?' : <At at={sentAt} />}</Fact>
      <Fact title="Permanently deleted">
        <Expiry at={expiresAt} />
      </Fact>
      {status !== undefined && <Fact title="Inbox row">{status ?? 'none'}</Fact>}
      {verdict && (
        <Fact title="Deployed code">
          <State is={shownVerdict(verdict, source).is}>{shownVerdict(verdict, source).label}</State>
          {refusal !== '' && (
            <p>
              <Stored text={refusal} />
            </p>
          )}
        </Fact>
      )}
      <Fact title="Cause" class="wide">
        <Stored text={fingerprint ?? 'unknown'} />
      </Fact>
      {lastError !== null && lastError !== fingerprint && (
        <Fact title="Last error" class="wide">
          <Stored text={lastError} />
        </Fact>
      )}
    </dl>
  );
}

/** A body that is not JSON, or has a number that JavaScript would round, is shown as one text. */
function parsed(body: string): unknown {
  if (lossyNumberText(body) !== undefined) return body;
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
