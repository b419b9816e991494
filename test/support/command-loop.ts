/** The process that resident-commands.ts starts. It runs commands one after another, as dist/main.js would. */

const commands = new URL('../../dist/cli/', import.meta.url);

let printed = '';
process.stdout.write = (text: string | Uint8Array) => {
  printed += text;
  return true;
};

process.on('message', async ([name, ...args]: string[]) => {
  printed = '';
  try {
    const { run } = await import(new URL(`${name}.js`, commands).href);
    await run(args);
    process.send?.({ stdout: printed });
  } catch (error) {
    process.send?.({ error: error instanceof Error ? error.stack : String(error) });
  }
});
