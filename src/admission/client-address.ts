import { isIPv4, isIPv6 } from 'node:net';

/**
 * A client with one IPv6 address controls all 2^64 addresses in its network. Some proxies append the client's port. A
 * connection that was reset has no address, contrary to the framework's types; such clients share a block.
 */
export function blockOf(address: string | undefined): string {
  if (address === undefined) return 'no address';
  if (isIPv4(address)) return address;
  const plain = address
    .replace(/^::ffff:/i, '')
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1');
  if (isIPv4(plain)) return plain;
  if (!isIPv6(plain)) return 'no address';
  const [head = '', tail = ''] = plain.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const missing = 8 - groups.length - tail.split(':').filter((group) => group !== '').length;
  const all = [...groups, ...Array<string>(Math.max(0, missing)).fill('0')];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return network.join(':');
}
