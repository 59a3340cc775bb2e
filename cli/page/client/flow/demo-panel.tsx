import { useEffect, useState } from 'preact/hooks';
import type { DemoFault, DemoState } from '../../server/protocol.ts';
import type { Api, RefusedError } from '../frame/api.ts';
import { Button, Command } from '../frame/controls.tsx';
import { many, roughly } from '../frame/format.ts';
import { useMailroom, useNow, useTask } from '../frame/mailroom.ts';
import { Notice, Refused, State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';

/** The demo: the orders that are placed, the faults to make and repair, and the receipt. Only while the demo runs the page. */
export function DemoPanel() {
  const { info, demo } = useMailroom();
  const [error, setError] = useState<RefusedError | null>(null);
  if (!info.isDemo) return null;
  return (
    <section class="findings" aria-labelledby="demo-title">
      <div class="row spread">
        <h2 id="demo-title">Break it</h2>
        {demo !== null && <Run demo={demo} onError={setError} />}
      </div>
      <Refused error={error} />
      {demo !== null && demo.faults.length > 0 && (
        <div class="panel">
          <ul class="lines">
            {demo.faults.map((fault) => (
              <Fault
                key={fault.name}
                fault={fault}
                isOrdering={demo.phase === 'ordering'}
                onError={setError}
              />
            ))}
          </ul>
        </div>
      )}
      {demo?.phase === 'settling' && (
        <p class="quiet-text">
          The receipt follows once every message is processed, every fault is repaired and no dead letter is
          left.
        </p>
      )}
      {demo?.phase === 'over' && !info.allowsChanges && (
        <p class="quiet-text">
          For another run, run <code>npm run demo -- --ui</code> again.
        </p>
      )}
      {demo?.receipt && (
        <div role="status">
          <h3>Receipt</h3>
          <pre class="receipt">{demo.receipt.join('\n')}</pre>
        </div>
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

const NAMES: Readonly<Record<DemoFault['name'], string>> = {
  'bank-down': 'Bank down',
  'rule-off': 'Rule off',
  'queue-purged': 'Queue purged',
  'worker-killed': 'Worker killed',
};

interface FaultProps extends RequestProps {
  readonly fault: DemoFault;
  /** Without new orders, a fault would affect nothing. */
  readonly isOrdering: boolean;
}

function Fault({ fault: { name, text, state, error, repair }, isOrdering, onError }: FaultProps) {
  const { isSending, send } = useRequest(onError);
  const isWhole = state === 'whole';
  const is = isWhole ? 'ok' : state === 'broken' ? 'broken' : 'busy';
  return (
    <li class="fault" data-fault={name}>
      <h3>{NAMES[name]}</h3>
      <p>{text}</p>
      <State is={is}>{isWhole ? 'works' : state}</State>
      <Button
        class={isWhole ? undefined : 'primary'}
        isDisabled={isSending || (isWhole ? !isOrdering : state === 'repairing')}
        onClick={() => send((api) => api.fault(name, isWhole ? 'break' : 'repair'))}
      >
        {isWhole ? 'Break' : 'Repair'}
        <span class="unseen"> it: {NAMES[name]}</span>
      </Button>
      {error !== null && (
        <div role="alert">
          <Notice is="broken" title={<Stored text={error} />} />
        </div>
      )}
      {!isWhole && repair !== '' && <Command line={repair} />}
    </li>
  );
}
