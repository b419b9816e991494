// Creates the organisation demo and prints a key for it, at the first start only. The key is stored nowhere.
import { execFileSync } from 'node:child_process';

const intake = (...args) =>
  execFileSync(process.execPath, ['dist/main.js', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });

if (intake('organisations', 'list', '--json').includes('"slug":"demo"'))
  console.log('The organisation demo exists; its key was printed when it was created.');
else {
  intake('organisations', 'create', 'demo', '--name', 'Demo');
  console.log(intake('keys', 'issue', '--organisation', 'demo', '--label', 'demo'));
}
