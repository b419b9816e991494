/**
 * Returns fast-check's parameters for a number of examples. `npm run check` tries a fifth of them, and CI tries two fifths.
 * The error is part of the report, because reports elsewhere leave out an error's cause.
 */
export const propertyRuns = (count: number) => ({
  numRuns: Math.ceil(count * Number(process.env.PROPERTY_SHARE ?? 1)),
  includeErrorInReport: true,
});
