import { useEffect } from 'preact/hooks';
import { time } from '../../../terminal/times.ts';
import type { Reading } from '../../server/readings.ts';
import type { WhyDocument } from '../documents.ts';
import type { RefusedError } from '../frame/api.ts';
import { Button, Command } from '../frame/controls.tsx';
import { preciseTime, stateOf } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { useReading } from '../frame/reading.tsx';
import { type Route, routeTo } from '../frame/route.ts';
import { Notice, Refused, State } from '../frame/state.tsx';
import { EventLink, Stored, StoredJson } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { Ago, At } from '../frame/times.tsx';
import { commandLike, type EventReport, isBad } from './waterfall.ts';
import { Waterfall } from './waterfall-view.tsx';

/** The state of an event, its problem and the remedy: the command `why`. */
export function EventScreen({ route: { argument: id, query } }: { readonly route: Route }) {
  return id === '' ? <NoEvent /> : <WhyScreen key={id} id={id} since={query.since} />;
}

interface WhyProps {
  readonly id: string;
  /** The age of the oldest event to search. */
  readonly since: string | undefined;
}

function WhyScreen({ id, since }: WhyProps) {
  const { reading, error, isReading, read } = useReading('why');
  const readAgain = (payload?: '1') =>
    read({ id, ...(since === undefined ? {} : { since }), ...(payload === undefined ? {} : { payload }) });
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
            {isReading ? 'Reading' : <span class="unseen">{document?.verdict.state}</span>}
          </span>
          {!isReading && reading !== null && <Ago at={reading.at} />}
          <Button isDisabled={isReading} onClick={() => readAgain()}>
            Read again
          </Button>
        </p>
      </div>
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

interface FoundProps {
  readonly document: WhyDocument;
  readonly reading: Reading;
  readonly isReading: boolean;
  readonly onPayload: () => void;
}

function Found({ document, reading, isReading, onPayload }: FoundProps) {
  const { verdict, events } = document;
  const [first] = events;
  return (
    <>
      <Notice is={stateOf(verdict.state)} title={<span class="verdict">{verdict.state}</span>}>
        <p>
          <Stored text={verdict.text} />
        </p>
        {verdict.next !== null && (
          <p>
            <Command line={verdict.next} />
          </p>
        )}
      </Notice>
      {first !== undefined && <EventFacts event={first} />}
      <Waterfall document={document} now={reading.at} />
      <Timeline events={events} />
      <Payloads events={events} isReading={isReading} onShow={onPayload} />
      <section class="panel stack" aria-labelledby="terminal-title">
        <h2 id="terminal-title">In a terminal</h2>
        <p class="row">
          The same verdict <Command line={`${reading.command} --story`} />
        </p>
        <p class="row">
          The logs of its functions <Command line={commandLike(reading.command, `logs ${verdict.eventId}`)} />
        </p>
      </section>
    </>
  );
}

/** Longer ranges of the search. */
const RANGES = ['6h', '24h', '7d'];

interface NotFoundProps {
  readonly id: string;
  readonly error: RefusedError;
  readonly since: string | undefined;
}

function NotFound({ id, error, since }: NotFoundProps) {
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

function NoEvent() {
  return (
    <>
      <h1>Event</h1>
      <Notice is="idle" title="Search for an event">
        <p>
          Enter an event id or at least its first 8 characters, an aggregate id such as an order id, a
          correlation id, any value in the data of an event, the id of a foreign event, or a dead-letter id.
        </p>
      </Notice>
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
      <Fact name="Source" text={source} />
      {aggregateId !== null && (
        <div>
          <dt>
            <Stored text={aggregateType ?? 'Aggregate'} clip={CHARACTERS} />
          </dt>
          <dd>
            <a class="id" href={routeTo('event', aggregateId)}>
              <Stored text={aggregateId} clip={CHARACTERS} />
            </a>
          </dd>
        </div>
      )}
      {occurredAt !== null && (
        <div>
          <dt>Occurred</dt>
          <dd>
            <At at={occurredAt} />
          </dd>
        </div>
      )}
      {correlationId !== null && (
        <div>
          <dt>Correlation id</dt>
          <dd>
            <EventLink id={correlationId} isWhole />
          </dd>
        </div>
      )}
      {causationId !== null && (
        <div>
          <dt>Caused by</dt>
          <dd>
            <EventLink id={causationId} isWhole />
          </dd>
        </div>
      )}
      <Fact name="Trace" text={traceId} />
    </dl>
  );
}

function Fact({ name, text }: { readonly name: string; readonly text: string | null }) {
  if (text === null) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Stored text={text} clip={CHARACTERS} />
      </dd>
    </div>
  );
}

interface TimelineRow {
  readonly key: string;
  readonly order: number;
  readonly type: string;
  readonly line: EventReport['story'][number];
}

const COLUMNS: readonly Column<TimelineRow>[] = [
  {
    title: 'Time (UTC)',
    cell: ({ line: { at } }) =>
      at === null ? <span class="quiet-text">no time</span> : <span title={time(at)}>{preciseTime(at)}</span>,
  },
  { title: 'Event', cell: ({ type }) => <Stored text={type} clip={60} /> },
  { title: 'Where', cell: ({ line: { consumer } }) => consumer ?? 'outbox' },
  {
    title: 'What',
    cell: ({ line }) =>
      isBad(line) ? (
        <State is="broken">
          <Stored text={line.text} />
        </State>
      ) : (
        <Stored text={line.text} />
      ),
  },
];

/** The story in words, in order of time. */
function Timeline({ events }: { readonly events: readonly EventReport[] }) {
  return (
    <section class="panel">
      <Table
        caption="Timeline"
        columns={events.length > 1 ? COLUMNS : COLUMNS.filter(({ title }) => title !== 'Event')}
        rows={rowsOf(events)}
        keyOf={({ key }) => key}
        empty="Nothing is stored about this event."
      />
    </section>
  );
}

/** A line without a time follows the one before it. */
function rowsOf(events: readonly EventReport[]): TimelineRow[] {
  return events
    .flatMap(({ eventId, type, story }) => {
      let order = 0;
      return story.map((line, index) => {
        order = line.at ?? order;
        return { key: `${eventId} ${index}`, order, type: type ?? 'unreadable', line };
      });
    })
    .sort((a, b) => a.order - b.order);
}

interface PayloadsProps {
  readonly events: readonly EventReport[];
  readonly isReading: boolean;
  /** Reads the data. */
  readonly onShow: () => void;
}

/** The data of the events: hidden until it is asked for, and absent unless the server was started with `--payload`. */
function Payloads({ events, isReading, onShow }: PayloadsProps) {
  const { info } = useMailroom();
  const shown = events.filter((event) => 'data' in event);
  return (
    <section class="panel stack" aria-labelledby="payload-title">
      <h2 id="payload-title">Payload</h2>
      {!info.showsPayloads && (
        <p>
          Hidden. To show payloads, stop the page and start it with <code>mailroom ui --payload</code>.
        </p>
      )}
      {info.showsPayloads && shown.length === 0 && (
        <p class="row">
          <Button isDisabled={isReading} onClick={onShow}>
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
