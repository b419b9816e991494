type Cohort = readonly [cohort: string, monthsLater: number, students: number];

const cell = { width: 44, height: 26 };
const left = 120;
const top = 62;

/**
 * Draws a heat map as SVG, with a row per month of first purchase and a column per month since then. Cells show the
 * share of customers who bought again.
 */
export function drawCohorts(cohorts: readonly Cohort[]): string {
  const rows = [...new Set(cohorts.map(([cohort]) => cohort))];
  const last = Math.max(...cohorts.map(([, later]) => later));
  const sizes = new Map(
    cohorts.filter(([, later]) => later === 0).map(([cohort, , students]) => [cohort, students]),
  );
  const width = left + (last + 1) * cell.width + 16;
  const height = top + rows.length * cell.height + 16;
  const x = (later: number) => left + later * cell.width;
  const y = (cohort: string) => top + rows.indexOf(cohort) * cell.height;
  const cells = cohorts.map(([cohort, later, students]) => {
    const share = students / (sizes.get(cohort) ?? students);
    const [at, of] = [x(later), y(cohort)];
    const shown = later === 0 ? String(students) : `${Math.round(100 * share)} %`;
    const fill = `fill="#0b6e4f" fill-opacity="${(later === 0 ? 0.08 : 0.1 + 0.9 * share).toFixed(2)}"`;
    const ink = later > 0 && share > 0.75 ? '#ffffff' : '#1b1b1b';
    return (
      `<rect x="${at + 1}" y="${of + 1}" width="${cell.width - 2}" height="${cell.height - 2}" rx="3" ${fill}/>` +
      `<text x="${at + cell.width / 2}" y="${of + 17}" text-anchor="middle" fill="${ink}">${shown}</text>`
    );
  });
  const names = rows.map(
    (cohort) => `<text x="${left - 12}" y="${y(cohort) + 17}" text-anchor="end">${cohort.slice(0, 7)}</text>`,
  );
  const months = Array.from(
    { length: last + 1 },
    (_, later) =>
      `<text x="${x(later) + cell.width / 2}" y="${top - 8}" text-anchor="middle">${later === 0 ? 'students' : `+${later}`}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" ` +
      'font-family="system-ui, sans-serif" font-size="12" fill="#1b1b1b">',
    '<title>Students who bought again, by month of first purchase and months since</title>',
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="${left - 12}" y="24" text-anchor="end" font-weight="600">First purchase</text>`,
    `<text x="${x(1)}" y="24" font-weight="600">Share of these students who bought again, by months since</text>`,
    ...months,
    ...names,
    ...cells,
    '</svg>',
    '',
  ].join('\n');
}
