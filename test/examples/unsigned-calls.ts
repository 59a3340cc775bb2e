import { LOCAL_REGION } from '../../localstack/workspace.ts';

/** Calls for which the project has no SDK client. The local AWS checks no signatures. */
function authorization(service: string): string {
  const scope = `19700101/${LOCAL_REGION}/${service}/aws4_request`;
  return `AWS4-HMAC-SHA256 Credential=test/${scope}, SignedHeaders=host, Signature=none`;
}

/** Puts an object, or creates a bucket. @param path - of the bucket, or of the object in it */
export async function uploadTo(endpoint: string, path: string, body?: Buffer<ArrayBuffer>): Promise<void> {
  const headers = { authorization: authorization('s3') };
  const response = await fetch(`${endpoint}/${path}`, { method: 'PUT', headers, body: body ?? null });
  if (!response.ok) throw new Error(`PUT ${path} returned ${response.status}: ${await response.text()}`);
}

/** Calls a service that takes forms and returns XML. */
export async function xmlOf(
  endpoint: string,
  service: string,
  form: Readonly<Record<string, string>>,
): Promise<string> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { authorization: authorization(service) },
    body: new URLSearchParams(form),
  });
  const xml = await response.text();
  if (!response.ok) throw new Error(`${form.Action} returned ${response.status}: ${xml}`);
  return xml;
}
