/** How many examples a property is tried with: `npm run check` tries a share of those that CI tries. */
export const propertyRuns = (count: number): number =>
  Math.ceil(count * Number(process.env.PROPERTY_SHARE ?? 1));
