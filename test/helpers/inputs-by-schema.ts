interface Field {
  example: unknown;
  required?: boolean;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
}

/**
 * By the fields of a Swagger schema: inputs at its limits, which are to be taken, and inputs just beyond them, which are
 * to be refused. Each is the example but for one field.
 */
export function inputsBySchema(schema: object): { taken: object[]; refused: object[] } {
  const fields = Object.entries(schema as Record<string, Field>);
  const example = Object.fromEntries(fields.map(([name, field]) => [name, field.example]));
  const [taken, refused] = [[example], [] as object[]];
  for (const [name, { required = true, minLength, maxLength, minItems }] of fields) {
    (required ? refused : taken).push({ ...example, [name]: undefined });
    const text = (length: number) => ({ ...example, [name]: 'x'.repeat(length) });
    const list = (length: number) => ({ ...example, [name]: Array<string>(length).fill('x') });
    const limits: [typeof text, number | undefined, -1 | 1][] = [
      [text, minLength, -1],
      [text, maxLength, 1],
      [list, minItems, -1],
    ];
    for (const [make, limit, beyond] of limits) {
      if (limit === undefined) continue;
      taken.push(make(limit));
      refused.push(make(limit + beyond));
    }
  }
  return { taken, refused };
}
