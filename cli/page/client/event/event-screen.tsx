import { useEffect } from 'preact/hooks';
import type { Reading } from '../../server/readings.ts';
import { Newest } from '../flow/newest.tsx';
import { NO_FLOW } from '../flow/stories.ts';
import type { RefusedError } from '../frame/api.ts';
import { Busy, Placeholder } from '../frame/busy.tsx';
import { Ago, At } from '../frame/clocks.tsx';
import { Button, Command } from '../frame/controls.tsx';
import { useMailroom } from '../frame/mailroom.ts';
import { useReading } from '../frame/reading.tsx';
import { type Route, routeTo } from '../frame/route.ts';
import { Refused } from '../frame/state.tsx';
import { EventLink, Stored, StoredJson } from '../frame/stored.tsx';
import { Fact } from '../frame/table.tsx';
import { Timeline } from './timeline-view.tsx';
import { VerdictNotice } from './verdict-notice.tsx';
import { commandLike, type EventReport, type WhyDocument } from './waterfall.ts';
import { Waterfall } from './waterfall-view.tsx';

/** The state of an event, its problem and the remedy: the command `why`. */
export function EventScreen({ route: { argument: id, query } }: { readonly route: Route }) {
  if (id !== '') return <WhyScreen key={id} id={id} since={query.since} />;
  return <NoEvent />;
}

/** The ids that can be searched for, and the newest events. */
function NoEvent() {
  const { flow } = useMailroom();
  return (
    <>
      <div>
        <h1>Event</h1>
        <p class="quiet-text">
          Search for an event id or its first 8 characters, an order id or another aggregate id, a correlation
          id, a value in the data of an event, the id of an external event, or a dead-letter id.
        </p>
      </div>
      <Newest flow={flow ?? NO_FLOW} />
    </>
  );
}

interface WhyProps {
  readonly id: string;
  /** The age of the oldest event to search. */
  readonly since: string | undefined;
}

function WhyScreen({ id, since }: WhyProps) {
  const { reading, error, isReading, read } = useReading('why');
  const readAgain = (payload?: '1') => read({ id, since, payload });
  useEffect(() => {
    readAgain();
  }, [id, since]);
  const document = error === null && reading !== null ? reading.document : null;
  const [first] = document?.events ?? [];
  return (
    <>
      <div class="row spread">
        <h1>
          <Stored text={first?.type ?? id} clip={80} />
        </h1>
        <p class="row">
          <span role="status">
            {isReading ? <Busy what={READ} /> : <span class="unseen">{document?.verdict.state}</span>}
          </span>
          {!isReading && reading !== null && <Ago at={reading.at} />}
          <Button isDisabled={isReading} onClick={() => readAgain()}>
            Read again
          </Button>
        </p>
      </div>
      {isReading && reading === null && <Placeholder />}
      {error !== null && <NotFound id={id} error={error} since={since} />}
      {document !== null && reading !== null && (
        <Found
          key={document.verdict.eventId}
          document={document}
          reading={reading}
          isReading={isReading}
          onPayload={() => readAgain('1')}
        />
      )}
    </>
  );
}

/** The rows and queues that `why` reads. */
const READ = "the outbox, each consumer's inbox and queue, and the dead letters";

/** Longer ranges of the search. */
const RANGES = ['6h', '24h', '7d'];

function NotFound({ id, error, since }: WhyProps & { readonly error: RefusedError }) {
  return (
    <>
      <Refused error={error} />
      {error.code === 'NO_SUCH_EVENT' && (
        <nav class="row" aria-label="Search further back">
          Search the last
          {RANGES.filter((range) => range !== since).map((range) => (
            <a key={range} class="button" href={routeTo('event', id, { since: range })}>
              {range}
            </a>
          ))}
        </nav>
      )}
    </>
  );
}

interface FoundProps {
  readonly document: WhyDocument;
  readonly reading: Reading;
  readonly isReading: boolean;
  readonly onPayload: () => void;
}

function Found({ document, reading: { command, at }, ...payloads }: FoundProps) {
  const { verdict, events } = document;
  const [first] = events;
  return (
    <>
      <VerdictNotice document={document} />
      {first !== undefined && <EventFacts event={first} />}
      {document.searchedTo !== null && (
        <p class="quiet-text">
          Scheduled events due after <At at={document.searchedTo} /> were not searched.
        </p>
      )}
      <Waterfall document={document} now={at} />
      <Timeline events={events} />
      <Payloads events={events} {...payloads} />
      <section class="panel stack" aria-labelledby="terminal-title">
        <h2 id="terminal-title">In a terminal</h2>
        <p class="row">
          The same verdict <Command line={`${command} --story`} />
        </p>
        <p class="row">
          The logs of its functions <Command line={commandLike(command, `logs ${verdict.eventId}`)} />
        </p>
      </section>
    </>
  );
}

/** Ids and names longer than this are cut. */
const CHARACTERS = 120;

/** The facts of an event's envelope. */
function EventFacts({ event }: { readonly event: EventReport }) {
  const { source, aggregateType, aggregateId, occurredAt, correlationId, causationId, traceId } = event;
  return (
    <dl class="facts">
      <Fact title="Source">{source && <Stored text={source} clip={CHARACTERS} />}</Fact>
      <Fact title={<Stored text={aggregateType ?? 'Aggregate'} clip={CHARACTERS} />}>
        {aggregateId && (
          <a class="id" href={routeTo('event', aggregateId)}>
            <Stored text={aggregateId} clip={CHARACTERS} />
          </a>
        )}
      </Fact>
      <Fact title="Occurred">{occurredAt && <At at={occurredAt} />}</Fact>
      <Fact title="Correlation id">{correlationId && <EventLink id={correlationId} isWhole />}</Fact>
      <Fact title="Caused by">{causationId && <EventLink id={causationId} isWhole />}</Fact>
      <Fact title="Trace">{traceId && <Stored text={traceId} clip={CHARACTERS} />}</Fact>
    </dl>
  );
}

interface PayloadsProps extends Pick<FoundProps, 'isReading' | 'onPayload'> {
  readonly events: readonly EventReport[];
}

/** The data of the events: hidden until it is asked for, and absent unless the server was started with `--payload`. */
function Payloads({ events, isReading, onPayload }: PayloadsProps) {
  const { info } = useMailroom();
  const shown = events.filter((event) => 'data' in event);
  return (
    <section class="panel stack" aria-labelledby="payload-title">
      <h2 id="payload-title">Payload</h2>
      {!info.showsPayloads && (
        <p>
          Hidden. To show payloads, start the web console with <code>mailroom ui --payload</code>.
        </p>
      )}
      {info.showsPayloads && shown.length === 0 && (
        <p class="row">
          <Button isDisabled={isReading} onClick={onPayload}>
            Show the payload
          </Button>
          <span class="quiet-text">Hidden until you show it.</span>
        </p>
      )}
      {shown.map(({ eventId, type, data }) => (
        <div key={eventId} class="stack">
          <h3 class="row">
            <Stored text={type ?? 'unreadable'} clip={80} />
            <EventLink id={eventId} />
          </h3>
          <StoredJson value={data} label={`Payload of ${eventId}`} />
        </div>
      ))}
    </section>
  );
}
