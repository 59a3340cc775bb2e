import { headingId } from '../../../tools/site/markdown.ts';
import type { CrashTrace } from './crash-run.ts';
import type { CrashStep, Lane } from './crash-steps.ts';

/** The parts of the page, in order, with the sentence that opens each. */
const PARTS: readonly (readonly [CrashTrace['part'], string, string])[] = [
  ['write', 'Writing an event', 'One transaction writes the order and its outbox row.'],
  [
    'relay',
    'Between the table and the bus',
    'The stream relay publishes and marks the row. The sweep publishes the rest.',
  ],
  [
    'consume',
    'At the consumer',
    'The handler charges a card with `ctx.once`, then commits the payment. The last case has a transactional handler.',
  ],
  ['bridge', 'At a bridge', 'The handler, made by `bridge`, sends the event to a target.'],
  [
    'broken',
    'The counterexample',
    'Mailroom does not work like this. The explorer runs the reversed protocol to show that it detects the loss.',
  ],
];

const INTRODUCTION = `# Recorded crashes

Each diagram shows one crash between the commit and the acknowledgement: every call, every row that changes, and the process that finishes the work.
The site [steps through them](../../../docs/crashes.md); [Crash points](../crash-points.md) lists every other one.

Generated: \`test/explorer/crashes\` runs the real relay and consumer in memory, crashes one of them at one call, and fails if this page differs.

A crossed arrow is a call that had no effect, or a response that was refused or lost. The note after a call shows the row that it changed. Only waits take time
in a recording; calls take none. \`f1\` and \`f2\` are the fencing tokens of two workers. The sweep's bookkeeping is left out.
`;

export function crashPage(traces: readonly CrashTrace[]): string {
  const parts = PARTS.flatMap(([part, heading, opening]) => [
    `## ${heading}`,
    opening,
    ...traces.filter((trace) => trace.part === part).map(section),
  ]);
  return [INTRODUCTION, ...parts, ''].join('\n\n').replaceAll('\n\n\n', '\n\n').trimEnd().concat('\n');
}

/** The table of docs/crashes.md: each crash with its result, and a link to its recording. */
export function crashTable(traces: readonly CrashTrace[]): string {
  const rows = traces
    .filter(({ title }) => !title.startsWith('No crash'))
    .map(
      (trace) =>
        `| [${trace.title}](${RECORDINGS}#${headingId(trace.title)}) | ${capitalized(resultOf(trace))} |`,
    );
  return ['| crash | result |', '| --- | --- |', ...rows].join('\n');
}

/** The recordings, from docs/. */
const RECORDINGS = '../test/explorer/crashes/recordings.md';

/** The traces for the stepper on the documentation site. */
export function crashData(traces: readonly CrashTrace[]): string {
  const lines = traces.map((trace) =>
    JSON.stringify({ ...trace, lanes: lanesOf(trace), result: resultOf(trace) }),
  );
  return `{"crashes":[\n${lines.join(',\n')}\n]}\n`; // a line for each, so that a change shows where it belongs
}

function section(trace: CrashTrace): string {
  return `### ${trace.title}\n\n${trace.about}\n\n\`\`\`mermaid\n${diagram(trace)}\n\`\`\`\n\n**Result:** ${resultOf(trace)}`;
}

/** The lanes of a trace from left to right: who calls, then what is called. */
function lanesOf({ steps }: CrashTrace): Lane[] {
  const order: readonly Lane[] = [
    'producer',
    'stream relay',
    'sweep',
    'queue',
    'worker 1',
    'worker 2',
    'worker 3',
    'table',
    'provider',
    'target',
    'bus',
  ];
  const used = new Set(steps.flatMap(({ from, to }) => [from, to]));
  return order.filter((lane) => used.has(lane));
}

function diagram(trace: CrashTrace): string {
  const lanes = lanesOf(trace);
  const ids = new Map(lanes.map((lane) => [lane, lane.replace(' ', '_')]));
  const id = (lane: Lane) => ids.get(lane) ?? lane;
  const last = lanes.at(-1) ?? 'table';
  let at = 0;
  const lines = trace.steps.flatMap((step) => {
    const later = step.atMs - at >= 1_000;
    at = step.atMs;
    return [
      ...(later ? [`Note over ${id(lanes[0] ?? last)},${id(last)}: at ${seconds(step)}`] : []),
      ...stepLines(step, id(step.from), id(step.to)),
    ];
  });
  return [
    'sequenceDiagram',
    ...lanes.map((lane) => `  participant ${id(lane)} as ${lane}`),
    ...lines.map((line) => `  ${line}`),
  ].join('\n');
}

function stepLines(
  { call, outcome, crash, changes, to }: CrashStep,
  caller: string,
  callee: string,
): string[] {
  const notes = changes.map(
    ({ row, after }) => `Note over ${callee}: ${row === to ? '' : `${row}: `}${after}`,
  );
  const again = outcome === 'done' && changes.length === 0 && to === 'table' && call.includes('transaction');
  return [
    `${caller}${outcome === 'lost' ? '-x' : '->>'}${callee}: ${call}${again ? ' (already applied)' : ''}`,
    ...notes,
    ...(outcome === 'refused' ? [`${callee}--x${caller}: refused`] : []),
    ...(outcome === 'unanswered' && crash === undefined ? [`${callee}--x${caller}: response lost`] : []),
    ...(crash === undefined ? [] : [`Note over ${caller}: crashes`]),
  ];
}

function seconds({ atMs }: CrashStep): string {
  return `${Math.round(atMs / 1_000)} s`;
}

/** The result of a trace: its counts, and the process that made the last write. */
export function resultOf({ steps, counts, broken }: CrashTrace): string {
  if (broken !== undefined)
    return `the explorer reports a violation: “${broken.replace(/ [0-9a-f]{8}-[0-9a-f-]{27}/, '')}”.`;
  const finish = steps.findLast(({ to, changes }) => to === 'table' && changes.length > 0);
  if (finish === undefined) throw new Error('A trace writes nothing');
  const facts = Object.entries(counts).map(([what, count]) => FACTS[what]?.(count) ?? `${what}: ${count}`);
  const deletion = steps.findLast(({ to, changes }) => to === 'queue' && changes.length > 0);
  const deleted =
    deletion === undefined || deletion.atMs - finish.atMs < 1_000
      ? ''
      : ` ${capitalized(deletion.from)} deletes the message ${when(deletion)}.`;
  return `${facts.join(', ')}. Finished by ${article(finish.from)} ${when(finish)}.${deleted}`;
}

function when(step: CrashStep): string {
  return step.atMs < 1_000 ? 'at once' : `after ${seconds(step)}`;
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** What was counted, in words. */
const FACTS: Readonly<Record<string, (count: number) => string>> = {
  orders: (count) => (count === 1 ? '1 order' : `${count} orders`),
  'times published': (count) => `published ${times(count)}`,
  payments: (count) => (count === 1 ? '1 payment' : `${count} payments`),
  'calls to the provider': (count) => `provider called ${times(count)}`,
  'idempotency keys': (count) => (count === 1 ? 'with 1 idempotency key' : `${count} idempotency keys`),
  'times forwarded': (count) => `forwarded ${times(count)}`,
  'event ids': (count) => (count === 1 ? 'under 1 event id' : `${count} event ids`),
  'dead letters': (count) => (count === 0 ? 'no dead letter' : `${count} dead letters`),
};

function article(lane: Lane): string {
  return lane.startsWith('worker') ? lane : `the ${lane}`;
}

function times(count: number): string {
  return ['never', 'once', 'twice'][count] ?? `${count} times`;
}
