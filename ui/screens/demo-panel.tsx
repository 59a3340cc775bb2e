import { useEffect, useState } from 'preact/hooks';
import type { DemoFault } from '../../cli/ui/protocol.ts';
import type { RefusedError } from '../frame/api.ts';
import { Button } from '../frame/button.tsx';
import { Command } from '../frame/command.tsx';
import { count } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { Refused } from '../frame/notice.tsx';
import { State } from '../frame/state.tsx';
import { refused } from '../frame/use-reading.ts';

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
        {demo !== null && (
          <p class="row">
            <span id="demo-orders">
              {count(demo.placed)} of {count(demo.orders)} orders placed
            </span>
            <progress aria-labelledby="demo-orders" max={demo.orders} value={demo.placed} />
          </p>
        )}
      </div>
      {error !== null && <Refused error={error} />}
      {demo !== null && (
        <ul class="faults">
          {demo.faults.map((fault) => (
            <Fault key={fault.name} fault={fault} isOver={demo.isOver} onError={setError} />
          ))}
        </ul>
      )}
      {demo?.isOver && (
        <p class="quiet-text">
          The run is over. For another one, run <code>npm run demo -- --ui</code> again.
        </p>
      )}
      {demo?.receipt && <Receipt lines={demo.receipt} />}
    </section>
  );
}

const NAMES: Readonly<Record<DemoFault['name'], string>> = {
  'bank-down': 'Bank down',
  'rule-off': 'Rule off',
  'queue-purged': 'Queue purged',
  'worker-killed': 'Worker killed',
};

interface FaultProps {
  readonly fault: DemoFault;
  /** No orders are placed any more, so a fault would affect nothing. */
  readonly isOver: boolean;
  readonly onError: (error: RefusedError | null) => void;
}

function Fault({ fault: { name, text, state, repair }, isOver, onError }: FaultProps) {
  const { api, keep } = useMailroom();
  const [isSending, setSending] = useState(false);
  const isWhole = state === 'whole';
  const change = (kind: 'break' | 'repair') => {
    setSending(true);
    onError(null);
    api
      .fault(name, kind)
      .then(
        (demo) => keep({ demo }),
        (failure) => onError(refused(failure)),
      )
      .finally(() => setSending(false));
  };
  return (
    <li class="fault" data-fault={name}>
      <div class="row spread">
        <h3>{NAMES[name]}</h3>
        <FaultState state={state} />
      </div>
      <p>{text}</p>
      {!isWhole && repair !== '' && (
        <>
          <p class="quiet-text">Repair runs:</p>
          <Command line={repair} />
        </>
      )}
      <p>
        <Button
          class={isWhole ? 'danger' : 'primary'}
          isDisabled={isSending || (isWhole ? isOver : state === 'repairing')}
          onClick={() => change(isWhole ? 'break' : 'repair')}
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
