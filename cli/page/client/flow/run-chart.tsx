import type { DemoReceipt } from '../../server/protocol.ts';
import { count, rate } from '../frame/format.ts';
import { ticksOf } from '../frame/ticks.ts';
import { type Band, bandsOf } from './run-figures.ts';

/** Orders, events and messages in each second of a run: three bands over one axis of time. */
export function SecondsChart({ seconds }: { readonly seconds: DemoReceipt['perSecond'] }) {
  const { barS, spanMs, bands } = bandsOf(seconds);
  if (spanMs === 0) return null;
  return (
    <figure class="chart" aria-labelledby="seconds-title">
      <figcaption>
        <h3 id="seconds-title">Per second of the run</h3>
        {barS > 1 && <p class="quiet-text">Each bar is the average of {barS} seconds.</p>}
      </figcaption>
      {bands.map((band) => (
        <BandBars key={band.name} band={band} />
      ))}
      <Axis spanMs={spanMs} title="Time since the first order" />
    </figure>
  );
}

const BAND_HEIGHT = 56;

/** The baseline and the line at the top are inside of the picture. */
const EDGE = 1;

function BandBars({ band: { name, total, peak, top, bars } }: { readonly band: Band }) {
  const width = 100 / bars.length;
  const heightOf = (value: number) => (value / top) * (BAND_HEIGHT - 2 * EDGE);
  return (
    <div class="chart-band">
      <h4>
        {name} <span class="quiet-text">{`${count(total)} in total, at most ${perSecond(peak)}`}</span>
      </h4>
      <p class="chart-ends" aria-hidden="true">
        <span>{perSecond(top)}</span>
        <span>0</span>
      </p>
      <svg
        class="chart-bars"
        width="100%"
        height={BAND_HEIGHT}
        role="img"
        aria-label={`${name} per second: ${count(total)} in total, at most ${perSecond(peak)}`}
      >
        <line x1="0" x2="100%" y1={EDGE} y2={EDGE} />
        {bars.map((value, index) => {
          const height = heightOf(value);
          return (
            <rect
              key={index}
              x={`${(index + 0.1) * width}%`}
              y={BAND_HEIGHT - EDGE - height}
              width={`${width * 0.8}%`}
              height={height}
            />
          );
        })}
        <line class="base" x1="0" x2="100%" y1={BAND_HEIGHT - EDGE} y2={BAND_HEIGHT - EDGE} />
      </svg>
    </div>
  );
}

/** A rate, without a decimal place if it is whole. */
function perSecond(value: number): string {
  return Number.isInteger(value) ? `${count(value)}/s` : rate(value);
}

/** An axis of time below charts, from 0. */
function Axis({ spanMs, title }: { readonly spanMs: number; readonly title: string }) {
  return (
    <div class="chart-axis">
      <svg class="ticks" width="100%" height="16" aria-hidden="true">
        {ticksOf(spanMs).map(({ part, text, anchor }) => (
          <text key={part} x={`${part * 100}%`} y="12" text-anchor={anchor}>
            {text}
          </text>
        ))}
      </svg>
      <p class="quiet-text">{title}</p>
    </div>
  );
}

/** The marks of the percentiles: they differ in shape, not in color. */
const MARKS = [
  ['p50', 'M-5 0A5 5 0 1 1 5 0A5 5 0 1 1-5 0z'],
  ['p90', 'M0-6.5 6.5 0 0 6.5-6.5 0z'],
  ['p99', 'M-2-8H2V8H-2z'],
] as const;

/** The percentiles of the times from an event's commit, to one axis. */
export function LatencyChart({ receipt }: { readonly receipt: DemoReceipt }) {
  const rows = [
    ['until published', receipt.commitToPublishedMs],
    ['until processed by a consumer', receipt.commitToProcessedMs],
    ['until charged by the bank', receipt.commitToChargedMs],
  ] as const;
  const spanMs = Math.max(1, ...rows.map(([, { p99 }]) => p99));
  const at = (ms: number) => `${(ms / spanMs) * 100}%`;
  return (
    <figure class="chart" aria-labelledby="latency-title">
      <figcaption>
        <h3 id="latency-title">Latency from commit</h3>
        <p class="quiet-text">On a local AWS on this machine</p>
      </figcaption>
      {rows.map(([name, latency]) => (
        <div key={name} class="latency">
          <h4>{name}</h4>
          <svg class="latency-line" width="100%" height="20" aria-hidden="true">
            <line x1="0" x2="100%" y1="10" y2="10" />
            <line class="range" x1={at(latency.p50)} x2={at(latency.p99)} y1="10" y2="10" />
            {MARKS.map(([mark, shape]) => (
              <svg key={mark} x={at(latency[mark])} y="10" overflow="visible" aria-hidden="true">
                <path d={shape} />
              </svg>
            ))}
          </svg>
          <ul class="legend">
            {MARKS.map(([mark, shape]) => (
              <li key={mark}>
                <svg class="latency-line" width="14" height="16" viewBox="-7 -8 14 16" aria-hidden="true">
                  <path d={shape} />
                </svg>
                {mark} <b>{count(latency[mark])} ms</b>
              </li>
            ))}
          </ul>
        </div>
      ))}
      <Axis spanMs={spanMs} title="Time from the commit" />
      <p class="quiet-text">p50: half were faster. p90: nine of ten. p99: 99 of 100.</p>
    </figure>
  );
}
