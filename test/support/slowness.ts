const exampleJson = JSON.stringify(
  Array.from({ length: 2_000 }, (_, at) => ({ id: `record ${at}`, at, tags: ['a', 'b'] })),
);
/** The CPU time that the work below takes on the machine that the times are promised on. */
const promisedWorkMs = 60;

/** Returns how many times slower this machine computes than the one that the times are promised on, but at least 1. */
export function slowness(): number {
  const before = process.threadCpuUsage();
  for (let round = 0; round < 40; round++) JSON.stringify(JSON.parse(exampleJson));
  const { user, system } = process.threadCpuUsage(before);
  return Math.max(1, (user + system) / 1_000 / promisedWorkMs);
}
