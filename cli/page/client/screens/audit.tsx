import { useState } from 'preact/hooks';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { AuditFindings } from '../audit/audit-findings.tsx';
import { Ledgers } from '../audit/ledgers.tsx';
import type { ShownAudit } from '../documents.ts';
import { Button } from '../frame/button.tsx';
import { many } from '../frame/format.ts';
import { Notice } from '../frame/notice.tsx';
import { At } from '../frame/times.tsx';
import { Choice } from '../readings/choice.tsx';
import { useKeptReading } from '../readings/kept-reading.ts';
import { ReadingBar } from '../readings/reading-bar.tsx';
import { PlanDialog } from './plan-dialog.tsx';

const RANGES = [
  ['1h', 'last hour'],
  ['6h', 'last 6 hours'],
  ['24h', 'last day'],
  ['7d', 'last 7 days'],
] as const;

type Since = (typeof RANGES)[number][0];

/** The conservation check: run on a click, because it reads every event of its range. */
export function AuditScreen() {
  const [since, setSince] = useState<Since>('1h');
  const [isPlanning, setPlanning] = useState(false);
  const { reading, error, isReading, read } = useKeptReading('audit');
  const report = reading?.document ?? undefined;
  return (
    <>
      <div class="panel-head">
        <h1>Audit</h1>
        <p class="quiet-text">
          Checks that every published event is accounted for at every consumer. Changes nothing.
        </p>
      </div>
      <section class="panel stack">
        <ReadingBar reading={reading} error={error} isReading={isReading} verb="Reading events">
          <Choice label="Range" value={since} options={RANGES} onChange={setSince} />
          <Button isDisabled={isReading} onClick={() => read({ since })}>
            {reading === null ? 'Run the audit' : 'Run the audit again'}
          </Button>
        </ReadingBar>
        {reading === null && !isReading && <p class="empty">Not run yet.</p>}
        {report !== undefined && (
          <Report report={report} isOk={reading?.exitCode === 0} onPlan={() => setPlanning(true)} />
        )}
      </section>
      {isPlanning && report !== undefined && (
        <PlanDialog request={{ kind: 'repair', since: sinceOf(report) }} onClose={() => setPlanning(false)} />
      )}
    </>
  );
}

/** The range of a repair: as long as the audit's and the time since, so that it covers the same events. */
function sinceOf({ since }: ShownAudit): string {
  return `${Math.ceil((Date.now() - since) / MINUTE_MS) + 10}m`;
}

interface ReportProps {
  readonly report: ShownAudit;
  readonly isOk: boolean;
  readonly onPlan: () => void;
}

function Report({ report, isOk, onPlan }: ReportProps) {
  const { verdict, since, until, events, published, pending, dead, discarded, unreadable } = report;
  const counts = [
    `${many(events, 'event')}: ${published} published, ${pending} pending, ${dead} dead, ${discarded} discarded`,
    ...(unreadable > 0 ? [`${unreadable} unreadable`] : []),
  ];
  return (
    <>
      <Notice is={isOk ? 'ok' : 'broken'} title={verdict}>
        <p>
          <At at={since} /> to <At at={until} />. {counts.join(', ')}.
        </p>
      </Notice>
      <Ledgers consumers={report.consumers} />
      <AuditFindings report={report} onPlan={onPlan} />
    </>
  );
}
