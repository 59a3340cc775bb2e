/** The W3C trace context of a span: what a message carries so that its consumers continue the trace. */
export interface TraceContext {
  /** `<version>-<trace id>-<span id>-<flags>`, e.g. `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. */
  readonly traceparent: string;
  /** The data of tracing vendors, at most 512 characters. @default none */
  readonly tracestate?: string | undefined;
}

/** The `traceparent` of W3C Trace Context, Level 1: no version `ff`, and neither id may be zero. A longer, future form does not match. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})(?<traceId>[\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;

/** The length that every vendor must be able to pass on (W3C Trace Context, "tracestate Limits"). Each stored character is paid for. */
const TRACESTATE_MAX = 512;

/** One `key=value` of a `tracestate`, without the spaces around it. */
const TRACESTATE_MEMBER =
  /^[a-z\d][a-z\d_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The maximum number of members of a `tracestate` (W3C Trace Context, "tracestate Header Field Values"). */
const TRACESTATE_MEMBERS_MAX = 32;

/**
 * Reads a trace context from untrusted values.
 *
 * @returns `undefined` if `traceparent` is malformed; a malformed or long `tracestate` is left out
 */
export function traceContextOf(
  values: { readonly traceparent?: unknown; readonly tracestate?: unknown } | undefined,
): TraceContext | undefined {
  const { traceparent, tracestate } = values ?? {};
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return undefined;
  return isTracestate(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/** The trace id of a context: 32 hexadecimal digits. */
export function traceIdOf({ traceparent }: TraceContext): string {
  return traceparent.slice(3, 35);
}

function isTracestate(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > TRACESTATE_MAX) return false;
  const members = value.split(',').map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''));
  return (
    members.length <= TRACESTATE_MEMBERS_MAX && members.every((member) => TRACESTATE_MEMBER.test(member))
  );
}

/** The global of Lambda's Node.js runtime that holds the trace of each of several concurrent invocations. */
interface LambdaGlobal {
  readonly awslambda?: { readonly InvokeStore?: { getXRayTraceId?(): unknown } };
}

const XRAY_ROOT = /^1-[\da-f]{8}-[\da-f]{24}$/;
const XRAY_PARENT = /^[\da-f]{16}$/;

/**
 * The X-Ray trace header of the current Lambda invocation. Read it when it is needed: Lambda changes it with each invocation, and
 * where invocations run concurrently, it is only in the runtime's own store (Lambda developer guide, "Node.js runtime for Lambda
 * Managed Instances").
 *
 * `Lineage`, by which Lambda stops recursive loops after about 16 calls, is left out: a chain of events may be longer, and
 * `TOO_MANY_HOPS` ends it.
 *
 * @returns `undefined` unless X-Ray samples the invocation: no trace would show an unsampled one, and storing it may cost a write unit
 */
export function sampledXRayHeader(): string | undefined {
  const store = (globalThis as LambdaGlobal).awslambda?.InvokeStore;
  const header = store?.getXRayTraceId?.() ?? process.env._X_AMZN_TRACE_ID;
  if (typeof header !== 'string') return undefined;
  const root = xrayTraceIdOf(header);
  if (root === undefined || fieldOf(header, 'Sampled') !== '1') return undefined;
  const parent = fieldOf(header, 'Parent');
  return `Root=${root}${XRAY_PARENT.test(parent) ? `;Parent=${parent}` : ''};Sampled=1`;
}

/** The maximum length of a trace header, in characters (EventBridge API reference, PutEventsRequestEntry). */
const XRAY_HEADER_MAX = 500;

/**
 * Reads an X-Ray trace header from a value that anyone may have written. Only such a header is sent to EventBridge: one that is too
 * long makes it refuse the whole call, and SQS takes only well-formed ones.
 *
 * @returns `undefined` if it is malformed, or has more than 500 characters
 */
export function xrayHeaderOf(value: unknown): string | undefined {
  if (xrayTraceIdOf(value) === undefined || typeof value !== 'string') return undefined;
  return value.length <= XRAY_HEADER_MAX && /^[\x20-\x7e]+$/.test(value) ? value : undefined;
}

/** The trace id in an X-Ray trace header; `undefined` without one. */
export function xrayTraceIdOf(header: unknown): string | undefined {
  if (typeof header !== 'string') return undefined;
  const root = fieldOf(header, 'Root');
  return XRAY_ROOT.test(root) ? root : undefined;
}

function fieldOf(header: string, name: string): string {
  const field = header.split(';').find((one) => one.startsWith(`${name}=`));
  return field?.slice(name.length + 1) ?? '';
}
