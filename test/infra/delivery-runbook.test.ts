import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { RUNBOOK_ANCHORS } from '../../lib/monitoring/alarm-plan.ts';
import { headingIds } from '../docs/links.ts';
import { ROOT } from '../docs/pages.ts';
import { withAlarmLines } from './alarm-lines.ts';
import { resources, synthStage } from './synth.ts';

const RUNBOOK = `${ROOT}docs/operating.md`;
const page = readFileSync(RUNBOOK, 'utf8');

/** CloudWatch API, PutMetricAlarm. */
const DESCRIPTION_MAX = 1_024;

describe('the text of an alarm', () => {
  const described = ['prod', 'local'] as const;
  const descriptions = described.flatMap((stage) => descriptionsOf(stage));

  test.each(descriptions)('$id: what happened, what to run first, where to read more', ({ stage, text }) => {
    const [what, run, read, ...more] = text.split('\n');
    expect(what).toMatch(/^[A-Z].*\.$/);
    const region = '--region (AWS::Region|us-east-1)';
    expect(run).toMatch(
      new RegExp(
        `^Run first: (npx cdk-mailroom [a-z].* ${region} --stack mailroom-${stage}|aws logs tail .* ${region})$`,
      ),
    );
    // It is pasted as it is.
    expect(run).not.toMatch(/[<>…]/);
    expect(read).toMatch(/^Then read: https:\/\/\S+\/docs\/operating\.md#[a-z-]+$/);
    expect(more).toEqual([]);
    expect(text.length).toBeLessThan(DESCRIPTION_MAX - 200);
  });

  test('links to a heading of the page', () => {
    const anchors = new Set(headings(page).map(({ anchor }) => anchor));
    const linked = descriptions.map(({ text }) => text.slice(text.indexOf('#') + 1));
    expect(linked.filter((anchor) => !anchors.has(anchor))).toEqual([]);
  });
});

describe('the page for the person on call', () => {
  const alarmHeadings = [
    'Relay alarms',
    'Delivery and dead-letter alarms',
    'Consumer alarms',
    'Audit and heartbeat alarms',
  ].flatMap(sectionOf);

  test('the runbook has exactly one heading for each alarm', () => {
    const anchors = alarmHeadings.map(({ anchor }) => anchor);
    expect(['when-you-are-paged', ...anchors]).toEqual(RUNBOOK_ANCHORS);
  });

  test('states the severity and the condition of each alarm', async () => {
    // Renew it with: npx vitest run --project constructs test/infra/delivery-runbook.test.ts -u
    await expect(withAlarmLines(page)).toMatchFileSnapshot(RUNBOOK);
  });

  test('finds a severity or a condition that was changed by hand', () => {
    const changed = page.replace(
      '**Page:** `OldestPendingAge` above 5',
      '**Ticket:** `OldestPendingAge` above 6',
    );
    expect(changed).not.toBe(page);
    expect(withAlarmLines(changed)).toBe(page);
  });

  test('no two headings of the runbook have the same anchor', () => {
    const anchors = headings(page).map(({ anchor }) => anchor);
    expect(new Set(anchors).size).toBe(anchors.length);
  });

  test.each(alarmHeadings)('$text: means, check, repair', ({ body }) => {
    expect([...body.matchAll(/^\*\*(\w+)\.\*\*/gm)].map(([, word]) => word)).toEqual([
      'Means',
      'Check',
      'Repair',
    ]);
    expect(body).toContain('mailroom ');
  });

  test('links to itself only where there is a heading', () => {
    const anchors = new Set(headings(page).map(({ anchor }) => anchor));
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor ?? '');
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter((anchor) => !anchors.has(anchor))).toEqual([]);
  });

  test('states the price of the alarms by the metrics that they watch', () => {
    const sentence =
      /month: (\d+) metrics, (\d+) more for the audit, (\d+) more\s+for heartbeats, (\d+) per consumer \((\d+) with heartbeats\), (\d+) more per SLO/;
    const [, relay, audit, heartbeat, consumer, beaten, slo] = (sentence.exec(page) ?? []).map(Number);
    const watched = (of: RegExp) =>
      Object.entries(resources(synthStage('prod').templates.Operations, 'AWS::CloudWatch::Alarm'))
        .filter(([id]) => of.test(id.replace(/^Alarms/, '')))
        .reduce((sum, [, { Properties }]) => sum + metricsOf(Properties), 0);
    const consumers = /^(orderstatus|payments|inventory|notifications)/;
    const audits = /^(EventsMissing|EventsDuplicated|RowsUnreadable|AuditSilent)/;
    const heartbeats = /^Heartbeat/;
    expect({ relay, audit, heartbeat, consumer, beaten, slo }).toEqual({
      relay: watched(/./) - watched(consumers) - watched(audits) - watched(heartbeats),
      audit: watched(audits),
      heartbeat: watched(heartbeats),
      // A stalled consumer is told by two more metrics beside heartbeats.
      consumer: watched(/^inventory/) - 2,
      beaten: watched(/^inventory/),
      slo: watched(/^payments/) - watched(/^inventory/),
    });
  });
});

/** The metrics of an alarm, each of which has its price. */
function metricsOf({ Metrics }: { readonly Metrics?: readonly object[] }): number {
  return Metrics === undefined ? 1 : Metrics.filter((metric) => 'MetricStat' in metric).length;
}

interface Heading {
  readonly text: string;
  readonly level: number;
  readonly anchor: string;
  readonly body: string;
}

/** The headings of a Markdown page, with what is below each. */
function headings(markdown: string): Heading[] {
  return markdown.split(/^(?=#+ )/m).flatMap((part) => {
    const [, marks = '', text = ''] = /^(#+) (.*)/.exec(part) ?? [];
    return marks === '' ? [] : [{ text, level: marks.length, anchor: headingIds(part)[0] ?? '', body: part }];
  });
}

/** The headings below one of the second level. */
function sectionOf(name: string): Heading[] {
  const all = headings(page);
  const start = all.findIndex(({ text, level }) => text === name && level === 2);
  const rest = all.slice(start + 1);
  const end = rest.findIndex(({ level }) => level <= 2);
  return rest.slice(0, end === -1 ? undefined : end);
}

/** The descriptions of a stage's alarms, tokens as their names. */
function descriptionsOf(stage: 'prod' | 'local') {
  const template = synthStage(stage).templates.Operations;
  return ['AWS::CloudWatch::Alarm', 'AWS::CloudWatch::CompositeAlarm'].flatMap((type) =>
    Object.entries(resources(template, type)).map(([id, { Properties }]) => ({
      id: `${stage} ${id}`,
      stage,
      text: plain(Properties.AlarmDescription),
    })),
  );
}

function plain(value: string | { 'Fn::Join': [string, (string | { Ref: string })[]] }): string {
  if (typeof value === 'string') return value;
  return value['Fn::Join'][1].map((part) => (typeof part === 'string' ? part : part.Ref)).join('');
}
