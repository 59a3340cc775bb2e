import { Button } from '../frame/button.tsx';
import { EventLink } from '../frame/event-link.tsx';
import { useMailroom } from '../frame/mailroom.ts';
import { Stored, StoredJson } from '../frame/stored.tsx';
import type { EventReport } from './why-document.ts';

interface PayloadsProps {
  readonly events: readonly EventReport[];
  readonly isReading: boolean;
  /** Reads the data. */
  readonly onShow: () => void;
}

/** The data of the events: hidden until it is asked for, and absent unless the server was started with `--payload`. */
export function Payloads({ events, isReading, onShow }: PayloadsProps) {
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
