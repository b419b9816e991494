// The health check of the image: ends with 0 if the process answers. An argument names another path, such as /health/ready.
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

const { PORT = '8080', TLS_CERT_FILE } = process.env;
const [path = '/health/live'] = process.argv.slice(2);
const options = {
  host: '127.0.0.1',
  port: PORT,
  path,
  timeout: 2_500,
  // The certificate is for the name that clients use, and this asks itself.
  rejectUnauthorized: false,
};
const request = (TLS_CERT_FILE ? getHttps : getHttp)(options, ({ statusCode }) =>
  process.exit(statusCode === 200 ? 0 : 1),
);
request.on('timeout', () => request.destroy(new Error('no answer within 2.5 seconds')));
request.on('error', ({ message }) => {
  console.error(message);
  process.exit(1);
});
