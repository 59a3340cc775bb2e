import { EventLink } from '../frame/event-link.tsx';
import { routeTo } from '../frame/route.ts';
import { Stored } from '../frame/stored.tsx';
import { At } from '../frame/times.tsx';
import type { EventReport } from './why-document.ts';

/** Ids and names longer than this are cut. */
const CHARACTERS = 120;

/** The facts of an event's envelope. */
export function EventFacts({ event }: { readonly event: EventReport }) {
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
