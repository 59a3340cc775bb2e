import type { Template } from 'aws-cdk-lib/assertions';

/** A template, one line per resource and output: type, logical id, what is kept when it goes, and every property. */
export function resourceLines(template: Template): string {
  const { Resources = {}, Outputs = {} } = template.toJSON();
  const resources = Object.entries(Resources as Record<string, Record<string, unknown>>).map(
    ([id, { Type, Properties = {}, Metadata: _, ...others }]) =>
      [String(Type).replace('AWS::', ''), id, ...settings(others), ...settings(Properties as object)].join(
        ' ',
      ),
  );
  const outputs = Object.entries(Outputs).map(([id, output]) =>
    ['Output', id, ...settings(output as object)].join(' '),
  );
  return [...resources, ...outputs].sort().join('\n');
}

function settings(properties: object): string[] {
  return Object.entries(properties).map(([name, value]) => `${name}=${text(value)}`);
}

/** A value, with references as `${Id}`: short enough to be read on a line. */
function text(value: unknown): string {
  if (typeof value === 'string')
    return value.replace(/\b[0-9a-f]{64}(?=\.zip)/, '<asset>').replaceAll('\n', '⏎');
  if (Array.isArray(value)) return `[${value.map(text).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const [[name = '', given] = []] = Object.entries(value);
  if (name === 'Ref') return `\${${given}}`;
  if (name === 'Fn::GetAtt') return `\${${(given as readonly string[]).join('.')}}`;
  if (name === 'Fn::ImportValue') return `\${${text(given)}}`;
  if (name === 'Fn::Join') return (given as [string, unknown[]])[1].map(text).join('');
  return `{${settings(value).join(', ')}}`;
}
