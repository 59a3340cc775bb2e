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
