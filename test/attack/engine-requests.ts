import { once } from 'node:events';
import { request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';

/** The User-Agent of Chrome 75, the last without `Sec-Fetch-Site`. */
export const OLD_BROWSER =
  'Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/75.0.3770.142 Safari/537.36';

/** An Authorization header for a service. MiniStack does not check the signature of a header. */
export function signature(service: string): string {
  const scope = `test/20260101/us-east-1/${service}/aws4_request`;
  return `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=00`;
}

/** A signature in the query. */
export const PRESIGNED =
  'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=test%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=00';

/** Sends a request as a browser, an SDK or an attacker sends it to an engine. */
export async function sendTo(port: number, headers: Record<string, string>, method: string, path: string) {
  return await new Promise<{ status: number; headers: object; body: string }>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, agent: false, headers }, (response) => {
      const { statusCode = 0 } = response;
      text(response).then((body) => resolve({ status: statusCode, headers: response.headers, body }), reject);
    });
    sent.on('error', reject);
    sent.end(method === 'POST' ? '{}' : undefined);
  });
}

/** Sends a GET over HTTP/2. */
export async function sendHttp2(port: number, headers: Record<string, string>) {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  try {
    const stream = session.request(headers);
    const [{ ':status': status }] = await once(stream, 'response');
    return { status: status as number, body: await text(stream) };
  } finally {
    session.close();
  }
}

/** Sends parts that the engine reads one after another. @returns the first bytes of its answer */
export async function answerToParts(port: number, parts: readonly string[]): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  try {
    await once(socket, 'connect');
    const answer = once(socket, 'data');
    for (const part of parts) {
      socket.write(part);
      await sendTo(port, {}, 'GET', '/_ministack/health'); // by its answer, the engine has read the part
    }
    return (await answer)[0];
  } finally {
    socket.destroy();
  }
}

/** A zip file with one file in it, stored as it is (APPNOTE.TXT 4.3). */
export function zipOf(name: string, content: string): Uint8Array {
  const [path, data] = [Buffer.from(name), Buffer.from(content)];
  const head = Buffer.alloc(26);
  head.writeUInt16LE(20, 0);
  head.writeUInt32LE(crc32(data), 10);
  head.writeUInt32LE(data.length, 14);
  head.writeUInt32LE(data.length, 18);
  head.writeUInt16LE(path.length, 22);
  const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), head, path, data]);
  const tail = Buffer.alloc(14);
  tail.writeUInt32LE(0o644 * 0x10000, 6);
  const entry = Buffer.concat([Buffer.from('PK\u0001\u0002\u0014\u0000'), head, tail, path]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(entry.length, 8);
  end.writeUInt32LE(local.length, 12);
  return Buffer.concat([local, entry, Buffer.from('PK\u0005\u0006'), end]);
}
