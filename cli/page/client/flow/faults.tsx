import { useEffect, useId, useState } from 'preact/hooks';
import type { DemoFault, DemoState } from '../../server/protocol.ts';
import type { Api, RefusedError } from '../frame/api.ts';
import { Button, Command } from '../frame/controls.tsx';
import { firstLine, many, roughly } from '../frame/format.ts';
import { useMailroom, useNow, useTask } from '../frame/mailroom.ts';
import { Icon, Notice, Refused, State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';

/** The orders that the demo places, and the faults to make and repair. Only while the demo runs the page. */
export function Faults() {
  const { info, demo } = useMailroom();
  const [error, setError] = useState<RefusedError | null>(null);
  if (!info.isDemo || demo === null) return null;
  const { phase, faults } = demo;
  return (
    <section class="findings" aria-labelledby="faults-title">
      <div class="row spread">
        <h2 id="faults-title">Break it</h2>
        <Run demo={demo} onError={setError} />
      </div>
      <Refused error={error} />
      {faults.length > 0 && (
        <div class="panel">
          <ul class="lines">
            {faults.map((fault) => (
              <Fault key={fault.name} fault={fault} isOrdering={phase === 'ordering'} onError={setError} />
            ))}
          </ul>
        </div>
      )}
      {phase === 'settling' && (
        <p class="quiet-text">
          The receipt follows once every message is processed, every fault is repaired and no dead letter is
          left.
        </p>
      )}
      {phase === 'over' && !info.allowsChanges && (
        <p class="quiet-text">
          For another run, run <code>npm run demo -- --ui</code> again.
        </p>
      )}
    </section>
  );
}

/** A part that sends requests. The live stream brings the new state of the demo, in order with later ones. */
interface RequestProps {
  readonly onError: (error: RefusedError | null) => void;
}

/** Sends the requests of a part. */
function useRequest(onError: RequestProps['onError']) {
  const { error, isBusy, start } = useTask((api, request: (to: Api) => Promise<unknown>) => request(api));
  useEffect(() => onError(isBusy ? null : error), [isBusy, error]);
  return { isSending: isBusy, send: start };
}

/** The orders of the run, and the button that ends it or starts another one. */
function Run({ demo, onError }: RequestProps & { readonly demo: DemoState }) {
  const { phase, placed, orders, endsAt } = demo;
  const { info } = useMailroom();
  const now = useNow();
  const { isSending, send } = useRequest(onError);
  return (
    <p class="row">
      <span id="demo-orders">
        {orders === null ? `${many(placed, 'order')} placed` : `${placed} of ${many(orders, 'order')} placed`}
        {phase === 'ordering' && endsAt !== null && `, more for ${roughly(endsAt - now)}`}
      </span>
      {orders !== null && <progress aria-labelledby="demo-orders" max={orders} value={placed} />}
      {info.allowsChanges && (
        <Button
          isDisabled={isSending || phase === 'waiting' || phase === 'settling'}
          onClick={() => send((api) => api.demoRun(phase === 'over' ? 'start' : 'end'))}
        >
          {phase === 'over' ? 'New run' : 'End the run'}
        </Button>
      )}
    </p>
  );
}

/** The part of the system that each fault breaks. */
const PARTS: Readonly<Record<DemoFault['name'], string>> = {
  'bank-down': 'Bank of payments',
  'rule-off': 'Rule of inventory',
  'queue-purged': 'Queue of notifications',
  'worker-killed': 'Worker of payments',
};

interface FaultProps extends RequestProps {
  readonly fault: DemoFault;
  /** Without new orders, a fault would affect nothing. */
  readonly isOrdering: boolean;
}

/** A fault in one line: its part, whether that is healthy, and the button that breaks or repairs it. The command is behind a click. */
function Fault({ fault: { name, text, state, error, repair }, isOrdering, onError }: FaultProps) {
  const { isSending, send } = useRequest(onError);
  const [isOpen, setOpen] = useState(false);
  const more = useId();
  const isWhole = state === 'whole';
  const is = isWhole ? 'ok' : state === 'broken' ? 'broken' : 'busy';
  const command = isWhole ? '' : repair;
  return (
    <li class="fault" data-fault={name}>
      <h3>{PARTS[name]}</h3>
      <State is={is}>{isWhole ? 'healthy' : state}</State>
      <p class="quiet-text" hidden={isOpen}>
        {isWhole && 'When broken: '}
        {firstLine(text)}
      </p>
      <button
        type="button"
        class="quiet"
        aria-expanded={isOpen}
        aria-controls={more}
        onClick={() => setOpen(!isOpen)}
      >
        {command === '' ? 'Details' : 'Command'}
        <span class="unseen">: {PARTS[name]}</span>
        <Icon name={isOpen ? 'down' : 'right'} />
      </button>
      <Button
        class={isWhole ? undefined : 'primary'}
        isDisabled={isSending || (isWhole ? !isOrdering : state === 'repairing')}
        onClick={() => send((api) => api.fault(name, isWhole ? 'break' : 'repair'))}
      >
        {isWhole ? 'Break' : 'Repair'}
        <span class="unseen"> it: {PARTS[name]}</span>
      </Button>
      {error !== null && (
        <div role="alert">
          <Notice is="broken" title={<Stored text={error} />} />
        </div>
      )}
      <div id={more} class="fault-more" hidden={!isOpen}>
        <p>{text}</p>
        {command !== '' && <Command line={command} />}
      </div>
    </li>
  );
}
