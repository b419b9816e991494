import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { needTool } from '../../scripts/tools.ts';
import { freePort } from './free-port.ts';

/**
 * The fault that a request gets: its response is lost, the server returns an error or refuses access, the connection is
 * cut before the request arrives, or there is no response.
 */
export type Fault = 'lost answer' | 'server error' | 'no access' | 'cut' | 'timeout' | undefined;

export interface S3Server {
  /** The URL of a lake in a bucket on this server, behind a proxy that simulates network faults. */
  readonly lakeUrl: string;
  readonly endpoint: string;
  /** Sets the function that decides which fault each request gets from now on. */
  fail(decide: (method: string, path: string) => Fault): void;
  /** The requests that reached the server. */
  readonly requests: string[];
  stop(): Promise<void>;
}

const bucket = 'lake-of-tests';

/** The environment variables that the AWS SDK reads. The server accepts any credentials. */
const credentials = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', AWS_REGION: 'eu-west-1' };

/** Starts Moto, an S3 server for tests. */
export async function startS3(): Promise<S3Server> {
  Object.assign(process.env, credentials);
  const program = join(needTool('moto'), 'moto_server');
  const port = await freePort();
  const server = spawn(program, ['-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
  });
  const direct = `http://127.0.0.1:${port}`;
  await untilAnswering(direct);
  const client = new S3Client({ endpoint: direct, forcePathStyle: true });
  await client.send(
    new CreateBucketCommand({
      Bucket: bucket,
      CreateBucketConfiguration: { LocationConstraint: 'eu-west-1' },
    }),
  );
  client.destroy();

  let decide: (method: string, path: string) => Fault = () => undefined;
  const requests: string[] = [];
  // Moto checks that a file does not exist and creates it later, so it could create a file twice. S3 does both in one step.
  // Requests that create a file therefore reach Moto one at a time.
  let creating: Promise<unknown> = Promise.resolve();
  const proxy = createServer((incoming, outgoing) => {
    const { method = '', url = '' } = incoming;
    const fault = decide(method, url);
    // Never respond, so that the client has to close the connection.
    if (fault === 'timeout') return;
    if (fault === 'cut') return void incoming.socket.destroy();
    if (fault === 'no access') return void outgoing.writeHead(403).end();
    if (fault === 'server error') return void outgoing.writeHead(500).end();
    requests.push(`${method} ${url}`);
    const send = () => forward(port, incoming, outgoing, fault === 'lost answer');
    if (incoming.headers['if-none-match'] === undefined) void send();
    else creating = creating.then(send);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return {
    lakeUrl: `s3://${bucket}/data?endpoint=${encodeURIComponent(endpoint)}`,
    endpoint,
    requests,
    fail(decided) {
      decide = decided;
    },
    async stop() {
      proxy.closeAllConnections();
      proxy.close();
      server.kill();
      await once(server, 'exit');
    },
  };
}

/**
 * Forwards a request, and waits for its end. To lose the response, it closes the connection once the server has responded.
 */
async function forward(
  port: number,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  isLost: boolean,
): Promise<void> {
  const { method, url, headers } = incoming;
  const isCutOff = () => incoming.destroyed && !incoming.complete;
  if (isCutOff()) return;
  const onward = request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
    if (isLost) {
      answer.resume().on('end', () => incoming.socket.destroy());
      return;
    }
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => incoming.socket.destroy());
  incoming.on('close', () => isCutOff() && onward.destroy());
  incoming.pipe(onward);
  await new Promise((resolve) => onward.once('close', resolve));
}

async function untilAnswering(url: string): Promise<void> {
  for (let attempt = 0; ; attempt++)
    try {
      await fetch(url);
      return;
    } catch (error) {
      if (attempt === 960) throw error;
      await sleep(250);
    }
}
