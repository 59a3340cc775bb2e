import { escaped } from '../../../terminal/escaped.ts';
import { duration, time } from '../../../terminal/times.ts';
import { stateOf } from '../frame/format.ts';
import { State } from '../frame/state.tsx';
import { EventLink, Stored } from '../frame/stored.tsx';
import { ticksOf } from '../frame/ticks.ts';
import {
  type Bar,
  chainOf,
  type EventReport,
  type Lane,
  lanesOf,
  laneWord,
  spanOf,
  type WhyDocument,
} from './waterfall.ts';

/** Event types are cut to this many characters. */
const TYPE_CHARACTERS = 80;

interface Scale {
  readonly from: number;
  readonly to: number;
}

/** The chain of events over time: for each event its outbox and its consumers, to one scale. */
export function Waterfall({ document, now }: { readonly document: WhyDocument; readonly now: number }) {
  const chain = chainOf(document.events).map((link) => ({ ...link, lanes: lanesOf(link.event, now) }));
  const scale = spanOf(chain.flatMap(({ lanes }) => lanes));
  return (
    <section class="panel" aria-labelledby="waterfall-title">
      <div class="panel-head">
        <h2 id="waterfall-title">{chain.length === 1 ? 'Story' : `Story of ${chain.length} events`}</h2>
        <p class="quiet-text">
          From {time(scale.from)}, {duration(scale.to - scale.from)}
        </p>
      </div>
      <ul class="legend">
        {LEGEND.map(([kind, text, shape]) => (
          <li key={kind}>
            <svg class={kind} width="18" height="10" aria-hidden="true">
              <rect width="18" {...shape} />
            </svg>
            {text}
          </li>
        ))}
      </ul>
      <div class="waterfall">
        <div class="lane">
          <span />
          <svg class="ticks" width="100%" height="16" aria-hidden="true">
            {ticksOf(scale.to - scale.from).map(({ part, text, anchor }) => (
              <text key={part} x={percent(part)} y="12" text-anchor={anchor}>
                {text}
              </text>
            ))}
          </svg>
        </div>
        <ol>
          {chain.map(({ event, depth, lanes }) => (
            <li key={event.eventId} style={{ '--depth': Math.min(depth, 4) }}>
              <EventLanes event={event} lanes={lanes} scale={scale} document={document} />
            </li>
          ))}
        </ol>
      </div>
      {document.more && <p class="quiet-text">The chain has more events than are shown here.</p>}
    </section>
  );
}

const LEGEND: readonly (readonly [Bar['kind'], string, { readonly y?: number; readonly height: number }])[] =
  [
    ['waiting', 'waiting', { height: 10 }],
    ['ended', 'until an attempt failed', { height: 10 }],
    ['working', 'last attempt', { height: 10 }],
    ['effect', 'effect', { y: 3, height: 4 }],
  ];

interface EventLanesProps {
  readonly event: EventReport;
  readonly lanes: readonly Lane[];
  readonly scale: Scale;
  readonly document: WhyDocument;
}

function EventLanes({ event, lanes, scale, document: { events, effectsInDoubt } }: EventLanesProps) {
  const { eventId, type, consumers, causationId } = event;
  const isCauseShown = events.some((other) => other.eventId === causationId);
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
          const { consumer } = lane;
          const status = consumer === null ? event.status : (consumers[consumer] ?? null);
          const word = laneWord(event, consumer, status);
          const doubts = effectsInDoubt.filter(
            (doubt) => doubt.eventId === eventId && doubt.consumer === consumer,
          );
          return (
            <li key={consumer ?? ''} class="lane">
              <span class="lane-name">{consumer ?? 'outbox'}</span>
              <Strip lane={lane} scale={scale} />
              <span class="lane-outcome">
                <State is={status === null ? 'busy' : stateOf(word)}>{word}</State>
                {doubts.map(({ effect }) => (
                  <State key={effect} is="broken">
                    <Stored text={effect} clip={TYPE_CHARACTERS} />: result unknown
                  </State>
                ))}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

const BAR_SHAPES: Readonly<Record<Bar['kind'], { readonly y: number; readonly height: number }>> = {
  waiting: { y: 6, height: 10 },
  ended: { y: 6, height: 10 },
  working: { y: 6, height: 10 },
  effect: { y: 9, height: 4 },
};

/** A lane's bars and marks. The timeline below tells the same in words, so screen readers skip the picture. */
function Strip({ lane: { bars, marks }, scale }: { readonly lane: Lane; readonly scale: Scale }) {
  return (
    <svg class="strip" width="100%" height="22" aria-hidden="true">
      <line x1="0" x2="100%" y1="11" y2="11" />
      {bars.map(({ kind, from, to, text }) => (
        <rect
          key={`${kind}${from}`}
          class={kind}
          x={percent(place(from, scale))}
          width={`${Math.max((place(to, scale) - place(from, scale)) * 98, 0.2).toFixed(2)}%`}
          {...BAR_SHAPES[kind]}
          rx="2"
        >
          <title>{`${escaped(text)}: ${duration(to - from)}`}</title>
        </rect>
      ))}
      {marks.map(({ kind, at, text }) => (
        <circle
          key={`${at}${text}`}
          class={`mark is-${kind}`}
          cx={percent(place(at, scale))}
          cy="11"
          r={kind === 'plain' ? 2.5 : 4.5}
        >
          <title>{`${time(at)} ${escaped(text)}`}</title>
        </circle>
      ))}
    </svg>
  );
}

/** The position of a time, from 0 to 1; a scheduled time is at the end. */
function place(at: number, { from, to }: Scale): number {
  return Math.min(1, Math.max(0, (at - from) / (to - from)));
}

/** Marks at the ends stay inside of the picture. */
function percent(part: number): string {
  return `${(part * 98 + 1).toFixed(2)}%`;
}
