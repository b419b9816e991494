/** How many examples a property is tried with: `npm run check` tries a fifth, CI two fifths. */
export const propertyRuns = (count: number): number =>
  Math.ceil(count * Number(process.env.PROPERTY_SHARE ?? 1));
