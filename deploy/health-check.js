// The image's health check. It exits with 0 if the process answers with 200. An optional argument specifies a different
// path, such as /health/ready.
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

// As in the service, an empty setting counts as unset.
const [PORT, TLS_CERT_FILE] = [process.env.PORT?.trim() || '8080', process.env.TLS_CERT_FILE?.trim()];
const [path = '/health/live'] = process.argv.slice(2);
const options = {
  host: '127.0.0.1',
  port: PORT,
  path,
  timeout: 2_500,
  // The certificate is for the public host name, but this request goes to 127.0.0.1.
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
