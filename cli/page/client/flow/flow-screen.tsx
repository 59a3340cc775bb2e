import { useId, useState } from 'preact/hooks';
import { isOpen } from '../../../reports/findings/finding-counts.ts';
import { escaped } from '../../../terminal/escaped.ts';
import { duration } from '../../../terminal/times.ts';
import type { Flow, FlowEvent } from '../../server/protocol.ts';
import { Ago, At } from '../frame/clocks.tsx';
import { Finding } from '../frame/finding.tsx';
import { stateOf } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { routeTo } from '../frame/route.ts';
import { Icon, Notice, State } from '../frame/state.tsx';
import { EventLink, ShortId, Stored } from '../frame/stored.tsx';
import { DemoPanel } from './demo-panel.tsx';
import { Diagram } from './diagram.tsx';
import { SourceConsumers } from './source-consumers.tsx';
import { type Story, storiesOf, summaryOf } from './stories.ts';

/** Everything that moves, waits or is stuck. */
export function FlowScreen() {
  const { flow, connection } = useMailroom();
  if (flow === null) {
    return (
      <>
        <h1>Flow</h1>
        <Notice
          is="busy"
          title={connection === 'lost' ? "The web console's server is not responding" : 'Reading'}
        />
      </>
    );
  }
  return (
    <>
      <h1 class="unseen">Flow</h1>
      <DemoPanel />
      <Findings findings={flow.status?.findings ?? []} />
      {flow.unread.map(({ part, message }) => (
        <Notice
          key={part}
          is="look"
          title={
            <>
              Not read: <Stored text={part} />
            </>
          }
        >
          <p>
            <Stored text={message} />
          </p>
        </Notice>
      ))}
      <section aria-labelledby="diagram-title">
        <h2 id="diagram-title" class="unseen">
          Flow of events
        </h2>
        <Diagram flow={flow} />
      </section>
      <SourceConsumers status={flow.status} />
      <Newest flow={flow} />
    </>
  );
}

/** The findings of `mailroom status`: each with the commands to run first, or with the operator who has acknowledged it. */
function Findings({ findings }: Pick<NonNullable<Flow['status']>, 'findings'>) {
  if (findings.length === 0) return null;
  return (
    <section aria-labelledby="findings-title" class="findings">
      <h2 id="findings-title">{findings.some(isOpen) ? 'What to do' : 'Acknowledged'}</h2>
      <div class="panel">
        <ul class="lines">
          {findings.map(({ state, what, commands, acknowledged }) => (
            <Finding
              key={what}
              is={acknowledged === undefined ? state : 'idle'}
              text={what}
              commands={commands}
              note={acknowledged && 'acknowledged'}
            >
              {acknowledged && (
                <p>
                  Acknowledged by <Stored text={acknowledged.by} clip={80} /> until{' '}
                  <At at={acknowledged.until} />: <Stored text={acknowledged.reason} clip={200} />
                </p>
              )}
            </Finding>
          ))}
        </ul>
      </div>
    </section>
  );
}

/** The stories that are shown at first. */
const STORIES_SHOWN = 12;

/** The newest events by correlation id: a story is a line that opens into its events. */
function Newest({ flow: { at, events, eventsSince, isSample } }: { readonly flow: Flow }) {
  const [isWhole, setWhole] = useState(false);
  const stories = storiesOf(events);
  return (
    <section class="panel" aria-labelledby="newest-title">
      <div class="panel-head">
        <h2 id="newest-title">Newest events</h2>
        <p class="quiet-text">
          {isSample ? 'A sample, because more than 100 events are committed per second' : 'By correlation id'}
        </p>
      </div>
      {stories.length === 0 ? (
        <p class="quiet-text">
          {eventsSince === null
            ? 'Reading'
            : `No events in the last ${duration(at - eventsSince)}. New events appear here.`}
        </p>
      ) : (
        <ol class="stories">
          {(isWhole ? stories : stories.slice(0, STORIES_SHOWN)).map((story) => (
            <StoryLine key={story.id} story={story} />
          ))}
        </ol>
      )}
      {stories.length > STORIES_SHOWN && (
        <p class="more-stories">
          <button type="button" class="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show fewer' : `Show all ${stories.length}`}
          </button>
        </p>
      )}
    </section>
  );
}

function StoryLine({ story: { id, events, at } }: { readonly story: Story }) {
  const [isOpen, setOpen] = useState(false);
  const [first] = events;
  const details = useId();
  return (
    <li>
      <div class="story">
        <button
          type="button"
          class="quiet twisty"
          aria-expanded={isOpen}
          aria-controls={details}
          aria-label={`Events of ${escaped(id)} at each consumer`}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'down' : 'right'} />
        </button>
        {first !== undefined && <Aggregate event={first} />}
        <span class="story-events">
          {events.map((event) => (
            <span key={event.eventId} class="story-event">
              {event !== first && <Icon name="next" />}
              <a href={routeTo('event', event.eventId)}>
                <Type event={event} />
              </a>
              <Summary event={event} />
            </span>
          ))}
        </span>
        <span class="id">
          <ShortId id={id} />
        </span>
        <span class="story-age">
          <Ago at={at} />
        </span>
      </div>
      <ul id={details} class="story-details" hidden={!isOpen}>
        {isOpen && events.map((event) => <EventStates key={event.eventId} event={event} />)}
      </ul>
    </li>
  );
}

interface EventProps {
  readonly event: FlowEvent;
}

/** The state of an event: in the line of a story, a symbol is enough for one that is well. */
function Summary({ event }: EventProps) {
  const { is, text } = summaryOf(event);
  return <State is={is}>{is === 'ok' ? <span class="unseen">{text}</span> : text}</State>;
}

/** Types longer than this are cut. */
const TYPE_CHARACTERS = 48;

function Type({ event: { type } }: EventProps) {
  return <Stored text={type ?? 'unreadable'} clip={TYPE_CHARACTERS} />;
}

/** The aggregate of an event, e.g. `Order …8d1c03ff`, with a link to its events. */
function Aggregate({ event: { aggregateType, aggregateId } }: EventProps) {
  return (
    <span class="aggregate">
      {aggregateType !== null && <Stored text={aggregateType} clip={TYPE_CHARACTERS} />}
      {aggregateId !== null && (
        <a class="id" href={routeTo('event', aggregateId)}>
          <ShortId id={aggregateId} />
        </a>
      )}
    </span>
  );
}

function EventStates({ event }: EventProps) {
  const outbox = event.status.toLowerCase();
  return (
    <li>
      <Type event={event} />
      <EventLink id={event.eventId} />
      <Aggregate event={event} />
      <span class="event-states">
        <State is={stateOf(outbox)}>{outbox}</State>
        {Object.entries(event.consumers).map(([name, state]) => (
          <span key={name} class="event-state">
            <span class="quiet-text">{name}</span> <State is={stateOf(state)}>{state}</State>
          </span>
        ))}
      </span>
      <Ago at={event.at} />
    </li>
  );
}
