/** The query and the range of a Logs Insights link. */
export interface LogsQuery {
  readonly region: string;
  readonly logGroups: readonly string[];
  /** Epoch milliseconds. */
  readonly since: number;
  readonly until: number;
  readonly query: string;
}

/** The domains of the console outside the commercial regions. */
const DOMAINS: readonly (readonly [string, string])[] = [
  ['cn-', 'console.amazonaws.cn'],
  ['us-gov-', 'console.amazonaws-us-gov.com'],
];

/** A link to the console's Logs Insights page that has the query, the range and the log groups filled in. */
export function insightsLink({ region, logGroups, since, until, query }: LogsQuery): string {
  const domain =
    DOMAINS.find(([prefix]) => region.startsWith(prefix))?.[1] ?? `${region}.console.aws.amazon.com`;
  const members = [
    `end~'${coded(new Date(until).toISOString())}`,
    `start~'${coded(new Date(since).toISOString())}`,
    "timeType~'ABSOLUTE",
    "tz~'UTC",
    `editorString~'${coded(query)}`,
    `source~(${logGroups.map((group) => `~'${coded(group)}`).join('')})`,
  ];
  const detail = `~(${members.join('~')})`;
  return `https://${domain}/cloudwatch/home?region=${region}#logsV2:logs-insights$3FqueryDetail$3D${detail}`;
}

/** The console's own encoding of a text: percent-encoding with an asterisk for the percent sign. */
function coded(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16)}`)
    .replaceAll('%', '*');
}
