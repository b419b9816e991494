/** A parameter in an API description. */
export interface DescribedParameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly schema: Readonly<Record<string, unknown>>;
}

interface Description {
  readonly components: { readonly parameters?: unknown };
}

/** Returns an operation's parameters, including shared ones. */
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
