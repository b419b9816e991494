import type { JsonSchema, Operation } from '../../src/http/operation/operation.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
}

/** The parameters of all operations. A shared parameter is written once and then referenced. */
export class Parameters {
  /** The component name of each shared parameter, keyed by its JSON. */
  readonly #shared = new Map<string, string>();
  readonly #components: Record<string, Parameter> = {};

  constructor(operations: readonly Operation<never>[]) {
    const seen = new Set<string>();
    for (const operation of operations) {
      for (const parameter of parametersOf(operation)) {
        const text = JSON.stringify(parameter);
        if (seen.has(text) && !this.#shared.has(text)) this.#share(parameter, text, operation.tag);
        seen.add(text);
      }
    }
  }

  #share(parameter: Parameter, text: string, tag: string): void {
    const plain = parameter.name.split(/[-_]/).map(capitalised).join('');
    // Different parameters can have the same name. For example, different lists have different cursors.
    const name = plain in this.#components ? `${tag}${plain}` : plain;
    if (name in this.#components) throw new Error(`two shared parameters would be called ${name}`);
    this.#shared.set(text, name);
    this.#components[name] = parameter;
  }

  get components(): Readonly<Record<string, Parameter>> {
    return this.#components;
  }

  of(operation: Operation<never>): JsonSchema {
    const parameters = parametersOf(operation).map((parameter) => {
      const name = this.#shared.get(JSON.stringify(parameter));
      return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` };
    });
    return parameters.length > 0 ? { parameters } : {};
  }
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function parametersOf({
  pathParameters = {},
  query = {},
  requestHeaders = {},
}: Operation<never>): Parameter[] {
  const path = Object.entries(pathParameters).map(([name, field]) => {
    const { description, ...schema } = field.schema as JsonSchema;
    return { name, in: 'path' as const, required: true, description, schema };
  });
  const asked = Object.entries(query).map(([name, field]) => {
    const {
      description = `only entries with this \`${name}\``,
      type,
      enum: values,
      examples: [example] = [],
      ...schema
    } = field.schema as JsonSchema & { type: string[]; enum?: unknown[]; examples?: unknown[] };
    const plain = {
      ...schema,
      type: type[0],
      // query.ts refuses empty values.
      ...(schema.maxLength !== undefined && { minLength: 1 }),
      ...(values && { enum: values.filter((value) => value !== null) }),
    };
    return {
      name,
      in: 'query' as const,
      description,
      ...(example !== undefined && { example }),
      schema: plain,
    };
  });
  const headers = Object.entries(requestHeaders).map(([name, { description, ...schema }]) => ({
    name,
    in: 'header' as const,
    description,
    schema,
  }));
  return [...path, ...asked, ...headers];
}
