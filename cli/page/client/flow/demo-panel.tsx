import { useMailroom } from '../frame/mailroom.ts';

/** The receipt of the demo's run, once it is over. */
export function DemoPanel() {
  const { info, demo } = useMailroom();
  if (!info.isDemo || !demo?.receipt) return null;
  return (
    <section class="findings" aria-labelledby="receipt-title" role="status">
      <h2 id="receipt-title">Receipt</h2>
      <pre class="receipt">{demo.receipt.join('\n')}</pre>
    </section>
  );
}
