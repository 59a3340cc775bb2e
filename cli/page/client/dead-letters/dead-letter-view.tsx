import type { ComponentChildren } from 'preact';
import type { PlanRequest } from '../../server/protocol.ts';
import { Button, Command } from '../frame/controls.tsx';
import { useMailroom } from '../frame/mailroom.ts';
import { ReadingBar, useReading } from '../frame/reading.tsx';
import { State } from '../frame/state.tsx';
import { EventLink, Stored, StoredJson } from '../frame/stored.tsx';
import { At, Expiry } from '../frame/times.tsx';
import { VERDICTS } from '../plans/verdicts.ts';
import { EditAndSend } from './edit-and-send.tsx';
import type { ReadDeadLetter } from './sources.ts';
import { useReadSources } from './sources.ts';

interface DeadLetterViewProps {
  readonly source: string;
  readonly id: string;
  readonly onPlan: (request: PlanRequest) => void;
}

/** One dead letter: its facts, the verdict of the deployed code, and on request its payload. */
export function DeadLetterView({ source, id, onPlan }: DeadLetterViewProps) {
  const { info } = useMailroom();
  const { of } = useReadSources();
  const { reading, error, isReading, read } = useReading('dlq-show');
  const listed = of(source).result?.deadLetters.find((deadLetter) => deadLetter.id === id);
  const shown = error === null ? (reading?.document ?? undefined) : undefined;
  const deadLetter: ReadDeadLetter | undefined = shown === undefined ? listed : { ...listed, ...shown };
  return (
    <>
      <section class="panel stack" aria-label="Facts">
        {deadLetter === undefined ? (
          <p class="empty">This dead letter has not been read.</p>
        ) : (
          <Facts deadLetter={deadLetter} status={shown?.status} />
        )}
        <ReadingBar reading={reading} error={error} isReading={isReading} verb="Receiving">
          <Button isDisabled={isReading} onClick={() => read({ source, id })}>
            {listed === undefined ? 'Read' : 'Read again'}
          </Button>
          {info.showsPayloads && (
            <Button isDisabled={isReading} onClick={() => read({ source, id, payload: '1' })}>
              Read with payload
            </Button>
          )}
          <button type="button" onClick={() => onPlan({ kind: 'redrive', source, ids: [id] })}>
            Plan a redrive
          </button>
          <button type="button" class="danger" onClick={() => onPlan({ kind: 'discard', source, ids: [id] })}>
            Plan a discard
          </button>
        </ReadingBar>
        {!info.showsPayloads && (
          <p class="quiet-text">
            Payloads are hidden. To see or edit this one, start the page with{' '}
            <code>mailroom ui --payload</code>.
          </p>
        )}
        {shown !== undefined && (
          <div class="row">
            Next: <Command line={shown.next} />
          </div>
        )}
      </section>
      {shown?.body !== undefined && <Payload source={source} id={id} body={shown.body} />}
    </>
  );
}

function Facts({
  deadLetter,
  status,
}: {
  readonly deadLetter: ReadDeadLetter;
  readonly status: string | null | undefined;
}) {
  const { eventId, type, sentAt, expiresAt, fingerprint, lastError, verdict, code, message } = deadLetter;
  const refusal = [code, message].filter(Boolean).join(': ');
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
          <State is={VERDICTS[verdict].is}>{VERDICTS[verdict].label}</State>
          {refusal !== '' && (
            <p>
              <Stored text={refusal} />
            </p>
          )}
        </Fact>
      )}
      <Fact title="Cause" isWide>
        <Stored text={fingerprint ?? 'unknown'} />
      </Fact>
      {lastError !== null && lastError !== fingerprint && (
        <Fact title="Last error" isWide>
          <Stored text={lastError} />
        </Fact>
      )}
    </dl>
  );
}

interface FactProps {
  readonly title: string;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
}

function Fact({ title, isWide = false, children }: FactProps) {
  return (
    <div class={isWide ? 'wide' : undefined}>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Payload({
  source,
  id,
  body,
}: {
  readonly source: string;
  readonly id: string;
  readonly body: string | null;
}) {
  if (body === null) return <p class="empty">Its payload cannot be read.</p>;
  return (
    <>
      <section class="panel stack">
        <h2>Payload</h2>
        <StoredJson value={parsed(body)} label="Payload" />
      </section>
      <EditAndSend source={source} id={id} body={body} />
    </>
  );
}

/** A body that is not JSON is shown as one text. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
