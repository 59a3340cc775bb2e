import { useEffect, useState } from 'preact/hooks';
import type { DemoFault, DemoState } from '../../server/protocol.ts';
import type { Api, RefusedError } from '../frame/api.ts';
import { refused } from '../frame/api.ts';
import { Button, Command } from '../frame/controls.tsx';
import { many, roughly } from '../frame/format.ts';
import { useMailroom, useNow } from '../frame/mailroom.ts';
import { Notice, Refused, State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';

/** The demo: the orders that are placed, the faults to make and repair, and the receipt. Only while the demo runs the page. */
export function DemoPanel() {
  const { info, api, demo, keep } = useMailroom();
  const [error, setError] = useState<RefusedError | null>(null);
  useEffect(() => {
    if (info.isDemo && demo === null)
      api.demo().then(
        (state) => keep({ demo: state }),
        (failure) => setError(refused(failure)),
      );
  }, [info.isDemo, demo, api, keep]);
  if (!info.isDemo) return null;
  return (
    <section class="panel stack demo" aria-labelledby="demo-title">
      <div class="row spread">
        <h2 id="demo-title">Break it</h2>
        {demo !== null && <Run demo={demo} onError={setError} />}
      </div>
      {error !== null && <Refused error={error} />}
      {demo !== null && (
        <ul class="faults">
          {demo.faults.map((fault) => (
            <Fault key={fault.name} fault={fault} isOrdering={demo.phase === 'ordering'} onError={setError} />
          ))}
        </ul>
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
      {demo?.receipt && <Receipt lines={demo.receipt} />}
    </section>
  );
}

interface RunProps {
  readonly demo: DemoState;
  readonly onError: (error: RefusedError | null) => void;
}

/** The orders of the run, and the button that ends it or starts another one. */
function Run({ demo: { phase, placed, orders, endsAt }, onError }: RunProps) {
  const { info } = useMailroom();
  const now = useNow();
  const { isSending, send } = useDemoRequest(onError);
  const change = phase === 'over' ? 'start' : 'end';
  const isTimed = phase === 'ordering' && endsAt !== null;
  return (
    <p class="row">
      <span id="demo-orders">
        {orders === null ? `${many(placed, 'order')} placed` : `${placed} of ${many(orders, 'order')} placed`}
        {isTimed && `, more for ${roughly(endsAt - now)}`}
      </span>
      {orders !== null && <progress aria-labelledby="demo-orders" max={orders} value={placed} />}
      {info.allowsChanges && (
        <Button
          isDisabled={isSending || phase === 'waiting' || phase === 'settling'}
          onClick={() => send((api) => api.demoRun(change))}
        >
          {phase === 'over' ? 'New run' : 'End the run'}
        </Button>
      )}
    </p>
  );
}

/** Sends a request that changes the demo. The live stream brings the new state, in order with later ones. */
function useDemoRequest(onError: RunProps['onError']) {
  const { api } = useMailroom();
  const [isSending, setSending] = useState(false);
  const send = (request: (to: Api) => Promise<DemoState>) => {
    setSending(true);
    onError(null);
    request(api)
      .catch((failure) => onError(refused(failure)))
      .finally(() => setSending(false));
  };
  return { isSending, send };
}

const NAMES: Readonly<Record<DemoFault['name'], string>> = {
  'bank-down': 'Bank down',
  'rule-off': 'Rule off',
  'queue-purged': 'Queue purged',
  'worker-killed': 'Worker killed',
};

interface FaultProps {
  readonly fault: DemoFault;
  /** Without new orders, a fault would affect nothing. */
  readonly isOrdering: boolean;
  readonly onError: (error: RefusedError | null) => void;
}

function Fault({ fault: { name, text, state, error, repair }, isOrdering, onError }: FaultProps) {
  const { isSending, send } = useDemoRequest(onError);
  const isWhole = state === 'whole';
  return (
    <li class="fault" data-fault={name}>
      <div class="row spread">
        <h3>{NAMES[name]}</h3>
        <FaultState state={state} />
      </div>
      <p>{text}</p>
      {error !== null && (
        <div role="alert">
          <Notice is="broken" title={<Stored text={error} />} />
        </div>
      )}
      {!isWhole && repair !== '' && (
        <>
          <p class="quiet-text">Repair runs:</p>
          <Command line={repair} />
        </>
      )}
      <p>
        <Button
          class={isWhole ? 'danger' : 'primary'}
          isDisabled={isSending || (isWhole ? !isOrdering : state === 'repairing')}
          onClick={() => send((api) => api.fault(name, isWhole ? 'break' : 'repair'))}
        >
          {isWhole ? 'Break' : 'Repair'}
          <span class="unseen"> it: {NAMES[name]}</span>
        </Button>
      </p>
    </li>
  );
}

function FaultState({ state }: { readonly state: DemoFault['state'] }) {
  if (state === 'whole') return <State is="ok">works</State>;
  return <State is={state === 'broken' ? 'broken' : 'busy'}>{state}</State>;
}

function Receipt({ lines }: { readonly lines: readonly string[] }) {
  return (
    <div role="status">
      <h3>Receipt</h3>
      <pre class="receipt">{lines.join('\n')}</pre>
    </div>
  );
}
