import { describe, expect, test } from 'vitest';
import { resources, synthStage } from './synth.ts';

interface Widget {
  readonly type: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  // biome-ignore lint/suspicious/noExplicitAny: each kind of widget has properties of its own
  readonly properties: any;
}

const template = synthStage('prod').templates.Operations;

describe('the dashboard', () => {
  const widgets = dashboard();

  test('reads from top to bottom in the order of the flow', () => {
    const headings = widgets.flatMap(({ properties }) => properties.markdown ?? []);
    expect(widgets[0]?.properties.title).toBe('Status');
    expect(headings).toEqual([
      '## SLO',
      '## Flow',
      '## Dead',
      '## Relay',
      '## Consumer order-status',
      '## Consumer payments',
      '## Consumer inventory',
      '## Consumer notifications',
      '## Cost',
    ]);
    const tops = widgets.map(({ y }) => y);
    expect(tops).toEqual([...tops].sort((a, b) => a - b));
  });

  test('begins with the alarms that tell, pages first', () => {
    const told = Object.entries({
      ...resources(template, 'AWS::CloudWatch::CompositeAlarm'),
      ...resources(template, 'AWS::CloudWatch::Alarm'),
    }).filter(([id]) => !/Slow(Now|ForLong)/.test(id));
    const { alarms } = widgets[0]?.properties ?? {};
    expect(alarms).toHaveLength(told.length);
    expect(alarms.slice(0, 2)).toEqual([
      expect.stringMatching(/^<AlarmsPage/),
      expect.stringMatching(/^<AlarmsOldestPending/),
    ]);
  });

  test('shows in one chart whether what comes in goes out', () => {
    const flow = widgets.filter(({ properties }) => properties.title?.startsWith('Committed = published'));
    expect(flow).toHaveLength(1);
    expect(flow[0]).toMatchObject({ type: 'metric', width: 24 });
    const shown = flow[0]?.properties.metrics
      .map((line: unknown[]) => line.at(-1))
      .filter(({ visible }: { visible?: boolean }) => visible !== false);
    expect(shown.map(({ label }: { label: string }) => label)).toEqual([
      'committed',
      'published',
      'delivered',
      'processed',
    ]);
    expect(shown[0].expression).toMatch(
      /^SUM\(SEARCH\('Namespace="Mailroom" MetricName="EventsCommitted" table="<.*>"', 'Sum', 300\)\)$/,
    );
  });

  test('shows every metric that an alarm watches', () => {
    const watched = new Set(
      [
        ...JSON.stringify(resources(template, 'AWS::CloudWatch::Alarm')).matchAll(/"MetricName":"(\w+)"/g),
      ].map(([, name]) => name),
    );
    const drawn = JSON.stringify(widgets);
    expect(watched.size).toBeGreaterThan(15);
    // Whether a consumer finishes messages is seen in what it processed.
    watched.delete('NumberOfMessagesDeleted');
    for (const name of watched) expect(drawn).toContain(`"${name}"`);
  });

  test('shows the findings of each audit run next to the SLO', () => {
    const titles = widgets.map(({ properties }) => properties.title ?? properties.markdown);
    const at = titles.indexOf('Found by the audit');
    expect(at).toBeGreaterThan(titles.indexOf('## SLO'));
    expect(at).toBeLessThan(titles.indexOf('## Flow'));
    const shown = widgets[at]?.properties.metrics.map((line: unknown[]) => [line[1], line.at(-1)]);
    expect(shown).toEqual([
      ['EventsMissing', { label: 'missing', period: 900, stat: 'Maximum' }],
      ['EventsDuplicated', { label: 'duplicated', period: 900, stat: 'Maximum' }],
      ['RowsUnreadable', { label: 'unreadable', period: 900, stat: 'Maximum' }],
    ]);
  });

  test('shows what the audit counted: the rate of a day for each consumer, and the error budget of a month for each SLO', () => {
    const [rates, budgets] = ['Processed of what', 'Error budget left'].map((title) =>
      widgets.find(({ properties }) => properties.title?.startsWith(title)),
    );
    expect(rates?.properties).toMatchObject({ start: '-P1D', view: 'singleValue' });
    expect(budgets?.properties).toMatchObject({ start: '-P30D', view: 'timeSeries' });
    const expressions = (widget: Widget | undefined) =>
      widget?.properties.metrics.flatMap(([first]: unknown[]) => (typeof first === 'string' ? [] : [first]));
    expect(expressions(rates)).toMatchObject(
      ['order-status', 'payments', 'inventory', 'notifications'].map((label, index) => ({
        label,
        expression: `100 * RUNNING_SUM(processed${index}) / RUNNING_SUM(published${index})`,
      })),
    );
    expect(expressions(budgets)).toMatchObject([
      {
        label: 'payments',
        expression: 'RUNNING_SUM(within1) - 0.99 * RUNNING_SUM(IF(FILL(within1, -1) >= 0, published1, 0))',
      },
    ]);
    const lines = budgets?.properties.metrics.slice(1);
    expect(lines.map((line: unknown[]) => [line[1], line[3], line.at(-1)])).toEqual([
      ['DeliveriesWithinSlo', 'payments', { id: 'within1', visible: false, period: 900, stat: 'Maximum' }],
      ['DeliveriesPublished', 'payments', { id: 'published1', visible: false, period: 900, stat: 'Maximum' }],
    ]);
  });

  test('keeps the period of each graph: another one would leave deliveries out', () => {
    expect(body().periodOverride).toBe('inherit');
  });

  test('draws the line of a promise', () => {
    const promised = widgets.flatMap(({ properties }) => properties.annotations?.horizontal ?? []);
    expect(promised).toEqual([{ value: 30_000, label: 'SLO', yAxis: 'left' }]);
  });

  test('no widget of the dashboard overlaps another or the edge', () => {
    for (const [index, widget] of widgets.entries()) {
      expect(widget.x + widget.width).toBeLessThanOrEqual(24);
      for (const other of widgets.slice(index + 1)) expect(overlap(widget, other)).toBe(false);
    }
  });
});

function overlap(a: Widget, b: Widget): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/** The widgets. */
function dashboard(): Widget[] {
  return body().widgets;
}

/** The dashboard, with tokens by their logical ids. */
function body(): { readonly widgets: Widget[]; readonly periodOverride?: string } {
  const [found] = Object.values(resources(template, 'AWS::CloudWatch::Dashboard'));
  const parts: (string | Record<string, unknown>)[] = found?.Properties.DashboardBody['Fn::Join'][1];
  const text = parts
    .map((part) => (typeof part === 'string' ? part : `<${Object.values(part).flat()[0]}>`))
    .join('');
  return JSON.parse(text);
}
