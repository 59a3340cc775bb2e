import { type Mutant, mutantsOf, unit } from './mutant.ts';

/** The consumer: reading a message as a foreign event. */
export const consumeForeignMutants: readonly Mutant[] = [
  ...mutantsOf('consume/foreign-message.ts', unit('foreign-message'), [
    {
      rule: 'an id value of 2,048 characters is allowed',
      from: 'value.length <= ID_VALUE_MAX',
      to: 'value.length < ID_VALUE_MAX',
    },
    {
      rule: 'an id value of 2,049 characters is refused',
      from: 'const ID_VALUE_MAX = 2_048;',
      to: 'const ID_VALUE_MAX = 2_049;',
    },
    {
      rule: 'a time of 10^11 or more is in milliseconds',
      from: 'value < SECONDS_BELOW',
      to: 'value <= SECONDS_BELOW',
    },
    {
      rule: 'a time below 10^11 is in seconds',
      from: 'const SECONDS_BELOW = 1e11;',
      to: 'const SECONDS_BELOW = 9e10;',
    },
    {
      rule: 'the last time of a Date is a time',
      from: 'ms <= TIME_MAX',
      to: 'ms < TIME_MAX',
    },
    {
      rule: 'a time after the last one of a Date is refused',
      from: 'ms >= 0 && ms <= TIME_MAX',
      to: 'ms >= 0',
    },
    {
      rule: 'a time before 1970 in numbers is refused',
      from: 'ms >= 0 && ms <= TIME_MAX',
      to: 'ms <= TIME_MAX',
    },
    {
      rule: '1970 is a time',
      from: 'ms >= 0 &&',
      to: 'ms > 0 &&',
    },
    {
      rule: 'a time is a whole number of milliseconds',
      from: 'Math.floor(value < SECONDS_BELOW ? value * 1_000 : value)',
      to: 'value < SECONDS_BELOW ? value * 1_000 : value',
    },
    {
      rule: 'text before an ISO time is refused',
      from: '/^\\d{4}',
      to: '/\\d{4}',
    },
    {
      rule: 'text after an ISO time is refused',
      from: '[+-]\\d\\d:\\d\\d)$/',
      to: '[+-]\\d\\d:\\d\\d)/',
      equivalent: 'V8 does not parse an ISO time that is followed by text.',
    },
    {
      rule: 'an ISO time needs a time zone',
      from: '(Z|[+-]\\d\\d:\\d\\d)$/',
      to: '(Z|[+-]\\d\\d:\\d\\d)?$/',
    },
    {
      rule: 'an ISO time may lack seconds',
      from: '(:\\d\\d(\\.\\d+)?)?',
      to: '(:\\d\\d(\\.\\d+)?)',
    },
    {
      rule: 'an ISO time may have a fraction',
      from: '(:\\d\\d(\\.\\d+)?)?',
      to: '(:\\d\\d)?',
    },
    {
      rule: 'a time zone may be west of Greenwich',
      from: '[+-]',
      to: '[+]',
    },
    {
      rule: 'a time zone may be east of Greenwich',
      from: '[+-]',
      to: '[-]',
    },
    {
      rule: 'an ISO time that no calendar has is refused',
      from: 'Number.isNaN(ms) ? undefined : ms',
      to: 'ms',
    },
    {
      rule: 'a consumer without foreign events reads none',
      from: 'if (first === undefined) return undefined;',
      to: "if (first === undefined) throw new Error('none');",
    },
    {
      rule: 'a foreign event is matched by its source',
      from: 'one.source === source && one.type === type',
      to: 'one.type === type',
    },
    {
      rule: 'a foreign event is matched by its type',
      from: 'one.source === source && one.type === type',
      to: 'one.source === source',
    },
    {
      rule: 'an EventBridge event of another type is not a foreign event',
      from: 'return own && foreignEventOf(own,',
      to: 'return foreignEventOf(own ?? first,',
    },
    {
      rule: 'a body that is not an object is not a foreign event',
      from: 'if (!isObject(content)) return undefined;',
      to: '',
    },
    {
      rule: 'a body that does not name its event needs a consumer of one',
      from: 'if (others.length > 0) {',
      to: 'if (false) {',
    },
    {
      rule: 'a body with a detail is not taken for one that does not name its event',
      from: "if ('detail' in content) return undefined;",
      to: '',
    },
    {
      rule: 'an event without a time occurred when it arrived',
      from: 'timeOf(subscription, content) ?? arrivedAt',
      to: 'timeOf(subscription, content)',
    },
    {
      rule: 'a foreign event begins a chain of its own',
      from: 'correlationId: eventId,',
      to: 'correlationId: foreignId,',
    },
    {
      rule: "EventBridge's id must be text",
      from: "typeof bridgeId === 'string' && bridgeId !== ''",
      to: "bridgeId !== undefined && bridgeId !== ''",
    },
    {
      rule: "EventBridge's id must not be empty",
      from: "typeof bridgeId === 'string' && bridgeId !== ''",
      to: "typeof bridgeId === 'string'",
    },
    {
      rule: "EventBridge's id does not replace a field that identifies the event",
      from: 'if (foreign.id === undefined) {',
      to: 'if (foreign.id === undefined || bridgeId !== undefined) {',
    },
    {
      rule: 'an id value must not be missing',
      from: "if (value === undefined) return 'is missing';",
      to: '',
    },
    {
      rule: 'an id value must not be empty',
      from: "if (value === '') return 'is empty';",
      to: '',
    },
    {
      rule: 'an id value is text or a number',
      from: "if (typeof value !== 'number') return",
      to: 'if (false) return',
    },
    {
      rule: 'an id value that was rounded is refused',
      from: 'Number.isSafeInteger(value)',
      to: 'Number.isInteger(value)',
    },
    {
      rule: 'an id value with a fraction is refused',
      from: 'Number.isSafeInteger(value)',
      to: 'Number.isFinite(value)',
    },
    {
      rule: 'the time field takes precedence over the time of EventBridge',
      from: 'if (path === undefined) return epochMs(bridgeTime);',
      to: 'if (path === undefined || bridgeTime !== undefined) return epochMs(bridgeTime);',
    },
    {
      rule: 'a time field without a time is refused',
      from: 'if (at !== undefined) return at;',
      to: 'return at;',
    },
    {
      rule: 'a path finds only own members',
      from: '|| !Object.hasOwn(value, name)',
      to: '',
    },
    {
      rule: 'a path does not enter lists',
      from: '!isObject(value) || !Object.hasOwn',
      to: "typeof value !== 'object' || value === null || !Object.hasOwn",
    },
    {
      rule: 'an SNS notification has its type',
      from: "body.Type !== 'Notification' ||",
      to: '',
    },
    {
      rule: 'an SNS notification has a topic',
      from: "|| typeof body.TopicArn !== 'string'",
      to: '',
    },
    {
      rule: 'an SNS notification has a message of text',
      from: "if (typeof body.Message !== 'string') return body;",
      to: '',
    },
    {
      rule: 'an SNS message that is nested too deep is refused',
      from: 'return parseJson(body.Message);',
      to: 'return JSON.parse(body.Message);',
    },
    {
      rule: 'an EventBridge event has a source of text',
      from: "typeof content.source === 'string' &&",
      to: '',
    },
    {
      rule: 'an EventBridge event has a type of text',
      from: "typeof content['detail-type'] === 'string' &&",
      to: '',
    },
    {
      rule: 'an EventBridge event has a detail',
      from: "=== 'string' && 'detail' in content",
      to: "=== 'string'",
    },
    {
      rule: 'null is not an object',
      from: '&& value !== null &&',
      to: '&&',
    },
    {
      rule: 'a list is not an object',
      from: '&& !Array.isArray(value)',
      to: '',
    },
  ]),
];
