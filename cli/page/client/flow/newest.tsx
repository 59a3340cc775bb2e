import { useId, useState } from 'preact/hooks';
import { escaped } from '../../../terminal/escaped.ts';
import { duration } from '../../../terminal/times.ts';
import type { Flow } from '../../server/protocol.ts';
import { Busy } from '../frame/busy.tsx';
import { Ago } from '../frame/clocks.tsx';
import { useFirst } from '../frame/controls.tsx';
import { stateOf } from '../frame/format.ts';
import { routeTo } from '../frame/route.ts';
import { Icon, State } from '../frame/state.tsx';
import { EventLink, ShortId, Stored } from '../frame/stored.tsx';
import { arrivedEvents, type ShownEvent, type Story, storiesOf, summaryOf } from './stories.ts';

/** The stories that are shown at first. */
const STORIES_SHOWN = 12;

/** The newest events by correlation id: a story is a line that opens into its events. */
export function Newest({ flow: { at, events, eventsSince, isSample, status } }: { readonly flow: Flow }) {
  const stories = storiesOf(arrivedEvents(events, status));
  const { shown, more } = useFirst(stories, STORIES_SHOWN);
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
          {eventsSince === null ? (
            <Busy what="the events of the last 6 hours" />
          ) : (
            `No events in the last ${duration(at - eventsSince)}. New events appear here.`
          )}
        </p>
      ) : (
        <ol class="stories">
          {shown.map((story) => (
            <StoryLine key={story.id} story={story} />
          ))}
        </ol>
      )}
      {more}
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
  readonly event: ShownEvent;
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
