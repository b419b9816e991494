import { readFileSync } from 'node:fs';
import { planFor } from '../src/cli/plan.ts';
import { writeOrCheck } from './write-or-check.ts';

/** Updates the output of `plan` in docs/operating/scaling.md. The page itself contains the commands. */
const page = readFileSync(new URL('../docs/operating/scaling.md', import.meta.url), 'utf8');

const withAnswer = page.replace(
  /(^node dist\/main\.js plan (.*)\n```\n\n```text\n)[^`]*/gm,
  (_, before: string, args: string) => `${before}${planFor(args.split(' '))}\n`,
);

const withSizes = withAnswer.replace(
  /^(\| [\d,]+ \| [\d,]+ \| [\d,]+ \| [\d,]+ \|).*$/gm,
  (_, asked: string) => `${asked} ${answerTo(asked).join(' | ')} |`,
);

/** Returns the cells for one line of the table: stage, service and PostgreSQL. */
function answerTo(asked: string): string[] {
  const [records, interactions, organisations, days] = asked.replaceAll(',', '').match(/\d+/g) as string[];
  const answer = planFor([
    `--records-per-second=${records}`,
    `--interactions-per-second=${interactions}`,
    `--organisations=${organisations}`,
    `--retention=${days}`,
  ]);
  return [/^Stage +(.*?):/m, /^Service +(.*?process(?:es)?)\b/m, /^PostgreSQL +(.*)$/m].map((part) =>
    (part.exec(answer)?.[1] ?? '').replace('; ', ', '),
  );
}

writeOrCheck('docs/operating/scaling.md', withSizes, 'src/cli/planning/measured-costs.ts says');
