/** A parameter as an API description has it. */
export interface DescribedParameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly schema: Readonly<Record<string, unknown>>;
}

interface Description {
  readonly components: { readonly parameters?: unknown };
}

/** The parameters of an operation, those included that it shares with others. */
export function describedParameters(
  { components }: Description,
  operation: { readonly parameters?: readonly (DescribedParameter | { readonly $ref: string })[] },
): DescribedParameter[] {
  const shared = (components.parameters ?? {}) as Record<string, DescribedParameter>;
  return (operation.parameters ?? []).map((parameter) => {
    if (!('$ref' in parameter)) return parameter;
    const found = shared[parameter.$ref.replace('#/components/parameters/', '')];
    if (!found) throw new Error(`the description has no ${parameter.$ref}`);
    return found;
  });
}
