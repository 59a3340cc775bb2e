import { useEffect } from 'preact/hooks';
import type { Reading } from '../../server/readings.ts';
import type { WhyDocument } from '../documents.ts';
import { EventFacts } from '../event/event-facts.tsx';
import { Payloads } from '../event/payloads.tsx';
import { Timeline } from '../event/timeline.tsx';
import { Waterfall } from '../event/waterfall-view.tsx';
import { commandLike } from '../event/why-document.ts';
import type { RefusedError } from '../frame/api.ts';
import { Button } from '../frame/button.tsx';
import { Command } from '../frame/command.tsx';
import { Notice, Refused } from '../frame/notice.tsx';
import { type Route, routeTo } from '../frame/route.ts';
import { stateOf } from '../frame/state-name.ts';
import { Stored } from '../frame/stored.tsx';
import { Ago } from '../frame/times.tsx';
import { useReading } from '../frame/use-reading.ts';

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
