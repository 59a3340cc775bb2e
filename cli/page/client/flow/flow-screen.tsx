import { useId, useState } from 'preact/hooks';
import type { StatusFinding } from '../../../reports/status/status-findings.ts';
import { escaped } from '../../../terminal/escaped.ts';
import { duration } from '../../../terminal/times.ts';
import type { Flow, FlowEvent } from '../../server/protocol.ts';
import { Command } from '../frame/controls.tsx';
import { stateOf } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { routeTo } from '../frame/route.ts';
import { Icon, Notice, State } from '../frame/state.tsx';
import { EventLink, ShortId, Stored } from '../frame/stored.tsx';
import { Ago } from '../frame/times.tsx';
import { DemoPanel } from './demo-panel.tsx';
import { Diagram } from './diagram.tsx';
import { type Story, storiesOf, summaryOf } from './stories.ts';

/** Everything that moves, waits or is stuck. */
export function FlowScreen() {
  const { flow, connection } = useMailroom();
  if (flow === null) {
    return (
      <>
        <h1>Flow</h1>
        <Notice is="busy" title={connection === 'lost' ? "The page's server is not responding" : 'Reading'} />
      </>
    );
  }
  return (
    <>
      <h1 class="unseen">Flow</h1>
      <DemoPanel />
      <FindingsList findings={flow.status?.findings ?? []} />
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
      <section class="panel" aria-labelledby="diagram-title">
        <h2 id="diagram-title" class="unseen">
          Flow of events
        </h2>
        <Diagram flow={flow} />
      </section>
      <Newest flow={flow} />
    </>
  );
}

/** The findings of `mailroom status`, each with the commands to run first. */
function FindingsList({ findings }: { readonly findings: readonly StatusFinding[] }) {
  if (findings.length === 0) return null;
  return (
    <section aria-labelledby="findings-title" class="findings">
      <h2 id="findings-title">What to do</h2>
      <ul>
        {findings.map(({ state, what, commands }) => (
          <li key={what}>
            <Notice is={state} title={<Stored text={what} />}>
              {commands.map((line) => (
                <p key={line}>
                  <Command line={line} />
                </p>
              ))}
            </Notice>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The longest event type that is shown whole. */
const TYPE_CHARACTERS = 48;

/** The stories that are shown at first. */
const STORIES_SHOWN = 12;

/** The newest events by correlation id: a story is a line that opens into its events. */
function Newest({ flow }: { readonly flow: Flow }) {
  const { at, events, eventsSince, isSample } = flow;
  const [isWhole, setWhole] = useState(false);
  const stories = storiesOf(events);
  const shown = isWhole ? stories : stories.slice(0, STORIES_SHOWN);
  return (
    <section class="panel" aria-labelledby="newest-title">
      <div class="panel-head">
        <h2 id="newest-title">Newest events</h2>
        <p class="quiet-text">
          {isSample ? 'A sample, because more than 100 events are committed per second' : 'By correlation id'}
        </p>
      </div>
      {stories.length === 0 ? (
        <p class="empty">
          {eventsSince === null
            ? 'Reading'
            : `No events in the last ${duration(at - eventsSince)}. New events appear here.`}
        </p>
      ) : (
        <ol class="stories">
          {shown.map((story) => (
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
        <span class="story-age">
          <Ago at={at} />
        </span>
        <span class="id">
          <ShortId id={id} />
        </span>
        <Aggregate event={first} />
        <span class="story-events">
          {events.map((event, index) => (
            <StoryEvent key={event.eventId} event={event} isFirst={index === 0} />
          ))}
        </span>
      </div>
      <ul id={details} class="story-details" hidden={!isOpen}>
        {isOpen && events.map((event) => <EventStates key={event.eventId} event={event} />)}
      </ul>
    </li>
  );
}

/** The aggregate of an event, e.g. `Order …8d1c03ff`, with a link to its events. */
function Aggregate({ event }: { readonly event: FlowEvent | undefined }) {
  const { aggregateType = null, aggregateId = null } = event ?? {};
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

function StoryEvent({ event, isFirst }: { readonly event: FlowEvent; readonly isFirst: boolean }) {
  const { is, text } = summaryOf(event);
  return (
    <span class="story-event">
      {!isFirst && <Icon name="next" />}
      <a href={routeTo('event', event.eventId)}>
        <Stored text={event.type ?? 'unreadable'} clip={TYPE_CHARACTERS} />
      </a>
      <State is={is}>{text}</State>
    </span>
  );
}

function EventStates({ event }: { readonly event: FlowEvent }) {
  const { eventId, type, status, consumers, at } = event;
  const outbox = status.toLowerCase();
  return (
    <li>
      <EventLink id={eventId} />
      <Stored text={type ?? 'unreadable'} clip={TYPE_CHARACTERS} />
      <Aggregate event={event} />
      <Ago at={at} />
      <span class="event-states">
        <State is={stateOf(outbox)}>{outbox}</State>
        {Object.entries(consumers).map(([name, state]) => (
          <span key={name} class="event-state">
            <span class="quiet-text">{name}</span> <State is={stateOf(state)}>{state}</State>
          </span>
        ))}
      </span>
    </li>
  );
}
