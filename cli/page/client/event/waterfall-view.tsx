import { escaped } from '../../../terminal/escaped.ts';
import { duration, time } from '../../../terminal/times.ts';
import type { WhyDocument } from '../documents.ts';
import { stateOf } from '../frame/format.ts';
import { State } from '../frame/state.tsx';
import { EventLink, Stored } from '../frame/stored.tsx';
import type { EventReport } from './waterfall.ts';
import { type Bar, chainOf, type Lane, lanesOf, type Mark, spanOf, ticksOf } from './waterfall.ts';

/** Event types are cut to this many characters. */
const TYPE_CHARACTERS = 80;

interface Scale {
  readonly from: number;
  readonly to: number;
}

/** The chain of events over time: for each event its outbox and its consumers, to one scale. */
export function Waterfall({ document, now }: { readonly document: WhyDocument; readonly now: number }) {
  const chain = chainOf(document.events).map(({ event, depth }) => ({
    event,
    depth,
    lanes: lanesOf(event, now),
  }));
  const scale = spanOf(chain.flatMap(({ lanes }) => lanes));
  return (
    <section class="panel" aria-labelledby="waterfall-title">
      <div class="panel-head">
        <h2 id="waterfall-title">{chain.length === 1 ? 'Story' : `Story of ${chain.length} events`}</h2>
        <p class="quiet-text">
          From {time(scale.from)}, {duration(scale.to - scale.from)}
        </p>
      </div>
      <Legend />
      <div class="waterfall">
        <div class="lane">
          <span />
          <svg class="ticks" width="100%" height="16" aria-hidden="true">
            {ticksOf(scale.to - scale.from).map(({ part, text }) => (
              <text key={part} x={percent(part)} y="12" text-anchor={anchorOf(part)}>
                {text}
              </text>
            ))}
          </svg>
        </div>
        <ol>
          {chain.map(({ event, depth, lanes }) => (
            <li key={event.eventId} class={`depth-${Math.min(depth, 4)}`}>
              <EventLanes event={event} lanes={lanes} scale={scale} document={document} />
            </li>
          ))}
        </ol>
      </div>
      {document.more && <p class="quiet-text">The chain has more events than are shown here.</p>}
    </section>
  );
}

function Legend() {
  return (
    <ul class="legend">
      <li>
        <svg class="key waiting" width="18" height="10" aria-hidden="true">
          <rect width="18" height="10" />
        </svg>
        waiting
      </li>
      <li>
        <svg class="key working" width="18" height="10" aria-hidden="true">
          <rect width="18" height="10" />
        </svg>
        last attempt
      </li>
      <li>
        <svg class="key effect" width="18" height="10" aria-hidden="true">
          <rect y="3" width="18" height="4" />
        </svg>
        effect
      </li>
    </ul>
  );
}

interface EventLanesProps {
  readonly event: EventReport;
  readonly lanes: readonly Lane[];
  readonly scale: Scale;
  readonly document: WhyDocument;
}

function EventLanes({ event, lanes, scale, document }: EventLanesProps) {
  const { eventId, type, consumers, causationId } = event;
  const doubts = document.effectsInDoubt.filter((doubt) => doubt.eventId === eventId);
  const isCauseShown = document.events.some((other) => other.eventId === causationId);
  return (
    <>
      <h3 class="row">
        <Stored text={type ?? 'unreadable'} clip={TYPE_CHARACTERS} />
        <EventLink id={eventId} />
        {causationId !== null && !isCauseShown && (
          <span class="quiet-text">
            caused by <EventLink id={causationId} />
          </span>
        )}
      </h3>
      <ul>
        {lanes.map((lane) => {
          const status = lane.consumer === null ? event.status : (consumers[lane.consumer] ?? null);
          return (
            <li key={lane.consumer ?? ''} class="lane">
              <span class="lane-name">{lane.consumer ?? 'outbox'}</span>
              <Strip lane={lane} scale={scale} />
              <Outcome
                status={status}
                isOutbox={lane.consumer === null}
                doubts={doubts.filter(({ consumer }) => consumer === lane.consumer)}
              />
            </li>
          );
        })}
      </ul>
    </>
  );
}

interface OutcomeProps {
  readonly status: string | null;
  readonly isOutbox: boolean;
  readonly doubts: WhyDocument['effectsInDoubt'];
}

function Outcome({ status, isOutbox, doubts }: OutcomeProps) {
  const word = status?.toLowerCase() ?? (isOutbox ? 'no outbox row' : 'not claimed');
  return (
    <span class="lane-outcome">
      <State is={status === null ? 'busy' : stateOf(word)}>{word}</State>
      {doubts.map(({ effect }) => (
        <State key={effect} is="broken">
          <Stored text={effect} clip={TYPE_CHARACTERS} />: RESULT UNKNOWN
        </State>
      ))}
    </span>
  );
}

/** A lane's bars and marks. The timeline below tells the same in words, so screen readers skip the picture. */
function Strip({ lane: { bars, marks }, scale }: { readonly lane: Lane; readonly scale: Scale }) {
  return (
    <svg class="strip" width="100%" height="22" aria-hidden="true">
      <line class="strip-ground" x1="0" x2="100%" y1="11" y2="11" />
      {bars.map((bar) => (
        <BarShape key={`${bar.kind}${bar.from}`} bar={bar} scale={scale} />
      ))}
      {marks.map((mark) => (
        <MarkShape key={`${mark.at}${mark.text}`} mark={mark} scale={scale} />
      ))}
    </svg>
  );
}

const BAR_SHAPES: Readonly<Record<Bar['kind'], { readonly y: number; readonly height: number }>> = {
  waiting: { y: 8, height: 6 },
  working: { y: 4, height: 14 },
  effect: { y: 9, height: 4 },
};

function BarShape({ bar: { kind, from, to, text }, scale }: { readonly bar: Bar; readonly scale: Scale }) {
  return (
    <rect
      class={kind}
      x={percent(place(from, scale))}
      width={`${Math.max((place(to, scale) - place(from, scale)) * 98, 0.2).toFixed(2)}%`}
      {...BAR_SHAPES[kind]}
      rx="2"
    >
      <title>{`${escaped(text)}: ${duration(to - from)}`}</title>
    </rect>
  );
}

function MarkShape({ mark: { kind, at, text }, scale }: { readonly mark: Mark; readonly scale: Scale }) {
  return (
    <circle class={`mark is-${kind}`} cx={percent(place(at, scale))} cy="11" r={kind === 'plain' ? 2.5 : 4.5}>
      <title>{`${time(at)} ${escaped(text)}`}</title>
    </circle>
  );
}

function anchorOf(part: number): 'start' | 'middle' | 'end' {
  if (part === 0) return 'start';
  return part > 0.9 ? 'end' : 'middle';
}

/** The position of a time, from 0 to 1; a scheduled time is at the end. */
function place(at: number, { from, to }: Scale): number {
  return Math.min(1, Math.max(0, (at - from) / (to - from)));
}

/** Marks at the ends stay inside of the picture. */
function percent(part: number): string {
  return `${(part * 98 + 1).toFixed(2)}%`;
}
