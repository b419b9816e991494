/** Returns the number of examples for a property. `npm run check` tries a fifth of them, and CI tries two fifths. */
export const propertyRuns = (count: number): number =>
  Math.ceil(count * Number(process.env.PROPERTY_SHARE ?? 1));
